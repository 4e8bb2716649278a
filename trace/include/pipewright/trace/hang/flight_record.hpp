#pragma once

// The communication that one rank issued, in order, as kept by torch's FlightRecorder. The format
// is that of torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (torch 2.11, version 2.10 of the
// dump): a pickle or JSON, one file per rank, whose name ends in the rank.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::trace {

struct FlightGroup {
  std::string name;
  std::string description;
  std::vector<int> ranks;            // ranks of the job, by rank within the group
  std::int64_t last_completed = -1;  // number of its last complete collective; -1: not known
  friend bool operator==(const FlightGroup&, const FlightGroup&) = default;
};

/// Summary of a list of tensors.
struct FlightTensors {
  std::string sizes;         // "[[4, 512]]", shortened if it is long
  std::string types;         // "Float", "BFloat16, Long"
  std::int64_t numbers = 0;  // total number of elements
  friend bool operator==(const FlightTensors&, const FlightTensors&) = default;
};

struct FlightOperation {
  enum class Kind { Send, Receive, Collective };
  Kind kind = Kind::Collective;
  std::string name{};         // "send", "all_reduce"
  int group = 0;              // index into the record's groups
  int peer = -1;              // of a send or receive: the job's rank at the other end
  std::int64_t sequence = 0;  // collective_seq_id, or p2p_seq_id, which counts the rank's own sends
                              // and receives in the group
  /// Operations with the same launch were issued as one (batch_isend_irecv, coalesced collectives):
  /// they run and end together.
  int launch = 0;
  bool is_coalesced = false;  // true even if it is the only operation of its launch
  FlightTensors inputs{}, outputs{};
  bool started = false;  // only recorded if torch times its kernels
  bool completed = false;
  std::string
      /// The innermost stack frame outside of torch, such as "train.py:12 step"; empty if not
      /// recorded.
      place{};
};

struct FlightRecord {
  int rank = 0;
  std::string file;
  std::vector<FlightGroup> groups;
  std::vector<FlightOperation> operations;
  bool is_whole = false;  // contains all of the rank's operations; otherwise the ring buffer has
                          // dropped older ones, or only active ones were dumped
};

/// Parses one dump. Throws MalformedFile that names file and field of every error.
FlightRecord parse_flight_record(std::string_view bytes, const std::string& file, int rank);

/// Reads dumps, or folders with dumps, of one job, sorted by rank. Throws InputError that lists the
/// errors of all files: unreadable, no rank in the name, two files of one rank, or malformed.
std::vector<FlightRecord> read_flight_records(const std::vector<std::filesystem::path>& paths);

}  // namespace pipewright::trace
