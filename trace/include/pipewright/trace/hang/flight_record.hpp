#pragma once

// What torch's FlightRecorder has kept of one rank: the communication that it issued, in its order.
// The format is that of torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (torch 2.11, version
// 2.10 of the dump): a pickle or JSON, one file a rank, whose name ends in the rank.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::trace {

struct FlightGroup {
  std::string name;
  std::string description;
  std::vector<int> ranks;  // of the job, by their rank in the group
  friend bool operator==(const FlightGroup&, const FlightGroup&) = default;
};

/// What a tensor list has in it.
struct FlightTensors {
  std::string sizes;         // "[[4, 512]]", cut off where it is long
  std::string types;         // "Float", "BFloat16, Long"
  std::int64_t numbers = 0;  // in all of them together
  friend bool operator==(const FlightTensors&, const FlightTensors&) = default;
};

struct FlightOperation {
  enum class Kind { Send, Receive, Collective };
  Kind kind = Kind::Collective;
  std::string name{};         // "send", "all_reduce"
  int group = 0;              // of the record's groups
  int peer = -1;              // of a send or receive: the rank of the job at the other end
  std::int64_t sequence = 0;  // collective_seq_id, or p2p_seq_id, which counts what the rank itself
                              // has sent and received in the group
  /// Operations of one launch were issued as one (batch_isend_irecv, coalesced collectives): they
  /// run and end together.
  int launch = 0;
  bool is_coalesced = false;  // … also where it is the only one of its launch
  FlightTensors inputs{}, outputs{};
  bool started = false;  // only recorded where torch times its kernels
  bool completed = false;
  std::string
      place{};  // the newest frame outside of torch, "train.py:12 step"; empty: not recorded
};

struct FlightRecord {
  int rank = 0;
  std::string file;
  std::vector<FlightGroup> groups;
  std::vector<FlightOperation> operations;
  bool is_whole = false;  // from the rank's first operation on; else a ring has lost older ones
};

/// One dump. Throws MalformedFile that names file and field of every fault.
FlightRecord parse_flight_record(std::string_view bytes, const std::string& file, int rank);

/// Dumps, or folders with dumps, of one job; by rank. Throws InputError that names all faults of
/// all files: not readable, no rank in the name, two of one rank, or as above.
std::vector<FlightRecord> read_flight_records(const std::vector<std::filesystem::path>& paths);

}  // namespace pipewright::trace
