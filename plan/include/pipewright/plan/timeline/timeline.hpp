#pragma once

// A predicted or measured execution: spans of work and samples of memory.

#include <array>
#include <map>
#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

enum class Row { Compute, Send, Receive, Reduce };
inline constexpr std::array all_rows{Row::Compute, Row::Send, Row::Receive, Row::Reduce};

/// One piece of work on one rank; times count from the start of the step.
struct Span {
  int rank = 0;
  Row row = Row::Compute;
  std::string action;  // the instruction's text, such as "2F0"
  Seconds start;
  Seconds end;
  /// The part of the span that is communication among the ranks of a stage (tensor-, context- or
  /// expert-parallel), and the part of that in which it waits for a late rank.
  Seconds shards{}, late{};
  friend bool operator==(const Span&, const Span&) = default;
};

/// The memory that a rank holds from `time` until its next sample.
struct MemorySample {
  int rank = 0;
  Seconds time;
  Bytes held;
  friend bool operator==(const MemorySample&, const MemorySample&) = default;
};

/// Reason why a rank does not compute.
enum class IdleCause {
  WarmUp,     // another rank computes what it waits for, before its first backward
  CoolDown,   // likewise, after its last forward, up to the end of the iteration
  Imbalance,  // likewise, in between: the ranks' loads are unequal
  Transfer,   // the data that it waits for is in transfer
  Queue,      // the transfer that it waits for is queued after another one
  Exposed,    // a transfer or a collective during which the rank may not compute
  Launch,     // it waits for nothing: the next action could have started but had not
  Shards,     // in the middle of an action: a rank that shares its stage is late
};
inline constexpr auto idle_cause_count = static_cast<std::size_t>(IdleCause::Shards) + 1;
/// Returns the names in the order of the enumeration: "warm-up", "cool-down", …
const std::vector<std::string>& idle_causes();
std::string to_string(IdleCause cause);

/// A stretch of idle time with one cause.
struct IdleSpan {
  int rank = 0;
  IdleCause cause = IdleCause::WarmUp;
  Seconds start;
  Seconds end;
  friend bool operator==(const IdleSpan&, const IdleSpan&) = default;
};

struct Timeline {
  std::string name;  // such as "predicted"
  int ranks = 0;
  Seconds length;  // of the iteration
  std::vector<Span> spans;
  std::vector<MemorySample> memory;
  std::vector<IdleSpan> idle{};         // by rank and time; empty if causes were not analyzed
  std::vector<std::size_t> critical{};  // spans on the critical path in order of time, or empty
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

/// Returns the row in which an instruction is shown.
Row row_of(InstructionKind kind);
/// Returns "compute", "send", "receive" or "reduce".
const char* word_of(Row row);

/// Returns an action's text without stage and microbatch: F, B, I, W, LOAD, STEP, SEND_F, …
std::string kind_of(std::string_view action);

/// Returns the compute time of each rank. Time in which two of its spans compute counts once; waits
/// for a late rank within a span do not count.
std::vector<Seconds> busy_per_rank(const Timeline& timeline);
/// Returns each rank's communication time within actions (tensor-, context- and expert-parallel).
/// It is part of the compute time and excludes waits for late ranks.
std::vector<Seconds> shards_per_rank(const Timeline& timeline);
/// Returns the iteration time less busy compute time, for each rank.
std::vector<Seconds> bubble_per_rank(const Timeline& timeline);
/// Returns the longest time from the start of a rank's first forward to the end of its last
/// backward. It is the iteration time if ranks begin the next iteration without waiting for each
/// other.
Seconds longest_span(const Timeline& timeline);
/// Returns the peak memory of each rank; 0 if nothing was sampled.
std::vector<Bytes> peak_per_rank(const Timeline& timeline);

/// Idle time by IdleCause.
using IdleByCause = std::array<Seconds, idle_cause_count>;
/// Returns the idle time of each rank by cause; zeros if causes were not analyzed.
std::vector<IdleByCause> idle_by_cause(const Timeline& timeline);
/// Returns the idle time of all ranks together.
IdleByCause sum(const std::vector<IdleByCause>& ranks);

/// Returns the compute time by kind of action, over all ranks.
std::map<std::string, Seconds> busy_per_kind(const Timeline& timeline);

}  // namespace pipewright::plan
