#pragma once

// Gathers a rank's events into PipelineEvents, for all trace formats: each reader classifies its
// own events.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chrome/chrome_records.hpp"
#include "pipewright/trace/explain/pipeline_events.hpp"

namespace pipewright::trace {

/// A range named by a pipeline runtime.
struct NamedRange {
  RangeKind kind;
  std::string_view name;  // text after the mark
};
/// Returns nothing if the range does not belong to a pipeline.
std::optional<NamedRange> named_range(std::string_view name);

/// Returns true for a kernel that only waits for other ranks, which does not count as work.
inline bool only_waits(std::string_view kernel) { return kernel.starts_with("nccl"); }

OperatorKind operator_kind(std::string_view name);

class EventGatherer {
 public:
  explicit EventGatherer(PipelineEvents& events) : events_(events) {}

  /// Returns the seconds since the first time that was passed.
  double seconds(const Microseconds& time);
  /// Returns the end of an event. All formats round it in the same way.
  static double end_of(double start, const Microseconds& duration) {
    return start + (static_cast<double>(duration.whole) + duration.fraction) * 1e-6;
  }

  void take_operator(std::uint32_t thread, std::string_view name, double start, double end);
  void take_transfer(std::uint32_t thread, OperatorKind kind, double start, double end);
  void take_range(const NamedRange& range, double start, double end, std::string_view stream = {});
  /// Adds a kernel or copy. A kernel that only waits for other ranks is ignored.
  void take_work(std::uint32_t thread, std::string_view name, double start, double end);

  /// Adds a kernel or copy whose launch time the reader already knows.
  void take_launched(double launched, double start, double end) {
    events_.device.push_back({launched, start, end});
  }

  /// The two ends of an arrow have the same id.
  enum class Arrow { Forward, Backward, Launch, Work };
  void take_arrow_end(Arrow end, std::int64_t id, std::uint32_t thread, double time);

  void set_interleaves() { events_.interleaves = true; }
  /// Sorts and joins the events. `base_time` is the nanoseconds since 1970 at which times begin.
  void finish(std::optional<std::int64_t> base_time);

 private:
  struct End {
    std::int64_t id = 0;
    double time = 0;
    std::uint32_t thread = 0;
  };
  struct Call {
    std::uint32_t thread = 0;
    OperatorKind kind = OperatorKind::Compute;
    double start = 0, end = 0;
    std::uint32_t name = 0;
  };

  static void sort_by_id(std::vector<End>& ends);
  template <class Take>
  static void join(std::vector<End>& begins, std::vector<End>& ends, const Take& take);
  void join_arrows();
  void join_device();
  void keep_outermost();
  void sort_ranges();

  PipelineEvents& events_;
  std::optional<std::int64_t> first_;  // µs
  Numbering names_;
  std::vector<Call> calls_, works_;
  std::vector<End> forward_, backward_, launches_, starts_;
  std::map<std::uint32_t, std::size_t> threads_of_arrows_;
};

}  // namespace pipewright::trace
