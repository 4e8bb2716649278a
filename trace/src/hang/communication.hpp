#pragma once

// The records of all ranks joined: what each of them holds of a transfer or of a collective.

#include <vector>

#include "pipewright/trace/hang/flight_record.hpp"

namespace pipewright::trace {

/// An operation by its record and its place in it.
struct FlightMember {
  int record = 0;
  int operation = 0;
  friend bool operator==(const FlightMember&, const FlightMember&) = default;
};

struct Communication {
  std::vector<int> ranks;  // that take part
  std::vector<FlightMember> members;
  std::vector<int> missing;  // ranks that have not issued it, or of which there is no record
  bool is_transfer = false;
  bool is_pending = false;  // some rank has not got through it
};

struct Communications {
  std::vector<Communication> all;
  std::vector<std::vector<int>> of;  // [record][operation] → in `all`
};

/// Sends and receives by (group, sender, receiver) in their order: from the first on where both
/// records are whole, else so that what is complete ends at the same transfer. Collectives by group
/// and sequence.
Communications joined(const std::vector<FlightRecord>& records);

const FlightOperation& operation_of(const std::vector<FlightRecord>& records,
                                    const FlightMember& member);
/// The one of a record; null: there is none. Members stand in the order of records, where they are
/// those of a collective.
const FlightMember* member_in(const std::vector<FlightMember>& members, int record);
/// Where the record of a rank is; -1: there is none.
int record_of_rank(const std::vector<FlightRecord>& records, int rank);

}  // namespace pipewright::trace
