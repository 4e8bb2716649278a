#pragma once

// What happened, or what will: spans of work and samples of memory. Predicted and measured alike.

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
  /// The part of it in which those who share out the rank's stages, shards or ranks with the other
  /// experts, pass on what they have to; and of that the part in which it waits for one that is
  /// late.
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

/// Why a rank computes nothing.
enum class IdleCause {
  WarmUp,     // another rank computes what it waits for; before its first backward
  CoolDown,   // the same after its last forward, up to the end of the iteration
  Imbalance,  // the same between the two: the ranks are not equally loaded
  Transfer,   // what it waits for is on its way
  Queue,      // what it waits for stands behind another transfer
  Exposed,    // a transfer or a collective during which the rank may not compute
  Launch,     // nothing: it could go on, and had not begun yet
  Shards,     // in the middle of an action: another who shares out its stages is late
};
inline constexpr auto idle_cause_count = static_cast<std::size_t>(IdleCause::Shards) + 1;
/// In the order of the enumeration: "warm-up", "cool-down", …
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
  std::vector<IdleSpan> idle{};         // by rank and time; empty where nobody looked for causes
  std::vector<std::size_t> critical{};  // spans on the critical path, in order of time; or empty
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

/// The row in which an instruction is shown.
Row row_of(InstructionKind kind);
/// "compute", "send", "receive", "reduce".
const char* word_of(Row row);

/// F, B, I, W, LOAD, STEP, SEND_F, …: an action's text without stage and microbatch.
std::string kind_of(std::string_view action);

/// Compute time of each rank: when two of its spans compute at the same time, that time counts
/// once; what it waits in them for one that is late, not at all.
std::vector<Seconds> busy_per_rank(const Timeline& timeline);
/// How long each rank's shards pass on what they have to, which is a part of its compute time: no
/// wait for one that is late is in it.
std::vector<Seconds> shards_per_rank(const Timeline& timeline);
/// Iteration time less busy compute time, of each rank.
std::vector<Seconds> bubble_per_rank(const Timeline& timeline);
/// The longest time from the start of a rank's first forward to the end of its last backward: the
/// iteration time when ranks begin the next iteration without waiting for each other.
Seconds longest_span(const Timeline& timeline);
/// The most memory that each rank holds; 0 where nothing was sampled.
std::vector<Bytes> peak_per_rank(const Timeline& timeline);

/// Idle time by IdleCause.
using IdleByCause = std::array<Seconds, idle_cause_count>;
/// The idle time of each rank; zeros where nobody looked for causes.
std::vector<IdleByCause> idle_by_cause(const Timeline& timeline);
/// The idle time of all ranks together.
IdleByCause sum(const std::vector<IdleByCause>& ranks);

/// Compute time by kind of action, over all ranks.
std::map<std::string, Seconds> busy_per_kind(const Timeline& timeline);

}  // namespace pipewright::plan
