#pragma once

// What each layer's forward, input gradient and weight gradient are made of: work of the device by
// kernel, gaps between, and what the host did meanwhile.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/profiler/activity/work_time.hpp"

namespace pipewright::profiler {

/// All kernels of one name.
struct KernelSum {
  std::string name;
  double count = 0;                    // each time
  plan::Seconds time;                  // all of them together, each time
  std::optional<plan::Bytes> moved{};  // all of them together; nothing where it is not told
};

/// One part of a layer, or of a stage, each time that it is run.
struct WorkPart {
  int layer = 0;
  plan::InstructionKind kind = plan::InstructionKind::Forward;
  int times = 0;                   // seen
  WorkTime time;                   // typical (plan::typical_mean); `count` is the most
  std::vector<KernelSum> kernels;  // the longest first
};

/// Work of one name that no call leads to, or that was asked for between actions.
struct StrayWork {
  std::string name;
  std::string call;  // that asked for it; empty: it was lost
  std::uint64_t count = 0;
};

/// What was not seen, or not understood.
struct LostRecords {
  std::uint64_t dropped = 0;        // for want of room
  std::uint64_t unread = 0;         // bytes
  std::uint64_t without_call = 0;   // work whose call was lost
  std::uint64_t without_times = 0;  // work that the device could not time
  std::uint64_t late_buffers = 0;
  std::uint64_t missing_buffers = 0;  // that had not come back when records were read
  std::uint64_t unclaimed = 0;        // work that was seen, but asked for between actions
  std::vector<StrayWork> strays;      // those without a call and those unclaimed, most first
  /// Whether times and counts are too small for it.
  bool any() const { return dropped + unread + without_call + without_times > 0; }
};

struct WorkReport {
  std::string source;              // who told: "CUPTI", "the host's clock"
  bool on_device = false;          // or else the CPU computes, and nothing is launched
  std::vector<WorkPart> parts;     // by layer and kind
  std::vector<KernelSum> kernels;  // of a pass; the longest first
  LostRecords lost;
  /// What recording adds to a pass, over it; nothing where that was not looked at.
  std::optional<double> overhead{};
};

/// One pass, or one step, as it was recorded.
struct RecordedPass {
  Activity activity;
  std::vector<WorkRange> ranges;
};

WorkReport work_report(const std::vector<RecordedPass>& passes);

/// All actions of one kind on one rank, together.
struct RankWork {
  int rank = 0;
  plan::InstructionKind kind = plan::InstructionKind::Forward;
  int times = 0;
  WorkTime time;
};
/// By rank and kind: for each rank the gaps before its work, those in which the host had not asked
/// for it apart from those in which the device waited.
std::vector<RankWork> work_by_rank(const RecordedPass& pass);
plan::Json to_json(const std::vector<RankWork>& ranks);

/// `name_of`: of a layer.
plan::Json to_json(const WorkReport& report, const std::function<std::string(int layer)>& name_of);

}  // namespace pipewright::profiler
