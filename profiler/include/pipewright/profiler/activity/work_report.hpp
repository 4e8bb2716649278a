#pragma once

// Breaks down each layer's forward, input gradient and weight gradient: the device's time by
// kernel, the gaps between kernels, and the host's time.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/profiler/activity/work_time.hpp"

namespace pipewright::profiler {

/// The sum over all kernels with one name.
struct KernelSum {
  std::string name;
  double count = 0;                    // for each run
  plan::Seconds time;                  // of all of them together, for each run
  std::optional<plan::Bytes> moved{};  // of all of them together; nothing if unknown
};

/// One part of a layer or of a stage, for each run.
struct WorkPart {
  int layer = 0;
  plan::InstructionKind kind = plan::InstructionKind::Forward;
  int times = 0;                   // number of runs seen
  WorkTime time;                   // typical (plan::typical_mean); `count` is the largest
  std::vector<KernelSum> kernels;  // the longest first
};

/// Work with one name whose call is unknown, or which was submitted between actions.
struct StrayWork {
  std::string name;
  std::string call;  // the call that submitted it; empty if it was lost
  std::uint64_t count = 0;
};

/// Records that were lost or could not be attributed.
struct LostRecords {
  std::uint64_t dropped = 0;        // records lost for lack of room
  std::uint64_t unread = 0;         // bytes
  std::uint64_t without_call = 0;   // work whose call was lost
  std::uint64_t without_times = 0;  // work that the device could not time
  std::uint64_t late_buffers = 0;
  std::uint64_t missing_buffers = 0;  // buffers that had not been returned when records were read
  std::uint64_t unclaimed = 0;        // work that was submitted between actions
  std::vector<StrayWork> strays;      // work without a call or between actions; most frequent first
  /// Returns true if records were lost, so that times and counts are too small.
  bool any() const { return dropped + unread + without_call + without_times > 0; }
};

struct WorkReport {
  std::string source;              // "CUPTI" or "the host's clock"
  bool on_device = false;          // false if the CPU computes, where nothing is launched
  std::vector<WorkPart> parts;     // by layer and kind
  std::vector<KernelSum> kernels;  // of a pass; the longest first
  LostRecords lost;
  /// Overhead of recording relative to a pass without it; nothing if it was not measured.
  std::optional<double> overhead{};
};

/// The records of one pass or one step.
struct RecordedPass {
  Activity activity;
  std::vector<WorkRange> ranges;
};

WorkReport work_report(const std::vector<RecordedPass>& passes);

/// The sum over all actions of one kind on one rank.
struct RankWork {
  int rank = 0;
  plan::InstructionKind kind = plan::InstructionKind::Forward;
  int times = 0;
  WorkTime time;
};
/// Returns the work of a pass by rank and kind. For each rank, gaps in which the host had not
/// submitted the next work are separate from gaps in which the device waited.
std::vector<RankWork> work_by_rank(const RecordedPass& pass);
plan::Json to_json(const std::vector<RankWork>& ranks);

/// Writes the report as JSON. `name_of` returns the name of a layer.
plan::Json to_json(const WorkReport& report, const std::function<std::string(int layer)>& name_of);

}  // namespace pipewright::profiler
