#pragma once

// Joins the records of all ranks: the entries of each transfer and each collective.

#include <vector>

#include "pipewright/trace/hang/flight_record.hpp"

namespace pipewright::trace {

/// An operation, by its record and its index in it.
struct FlightMember {
  int record = 0;
  int operation = 0;
  friend bool operator==(const FlightMember&, const FlightMember&) = default;
};

struct Communication {
  std::vector<int> ranks;  // participants
  std::vector<FlightMember> members;
  std::vector<int> missing;  // ranks that have not issued it, or that have no record
  std::vector<int> passed;   // ranks that have completed it, including those that no longer list it
  bool is_transfer = false;
  bool is_pending = false;  // at least one rank has not completed it
};

struct Communications {
  std::vector<Communication> all;
  std::vector<std::vector<int>> of;  // [record][operation] → index in `all`
};

/// Matches sends and receives by (group, sender, receiver) in order: from the first one if both
/// records are whole, otherwise so that the completed ones end at the same transfer. Matches
/// collectives by group and sequence number.
Communications joined(const std::vector<FlightRecord>& records);

const FlightOperation& operation_of(const std::vector<FlightRecord>& records,
                                    const FlightMember& member);
/// Returns the member of a record, or null. Members must be in the order of records, as those of a
/// collective are.
const FlightMember* member_in(const std::vector<FlightMember>& members, int record);
/// Returns the index of a rank's record, or -1.
int record_of_rank(const std::vector<FlightRecord>& records, int rank);

}  // namespace pipewright::trace
