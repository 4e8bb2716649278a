// Generates synthetic traces of torch's profiler: a simulated pipeline, as each rank would have
// traced it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <variant>
#include <vector>

#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/schedules/placement_of.hpp"
#include "pipewright/plan/schedules/schedule.hpp"
#include "pipewright/sim/scenario/simulate.hpp"

namespace pipewright::test {

enum class TraceStyle { Ranges, MicrobatchRanges, Operators };

struct SyntheticTraces {
  TraceStyle style = TraceStyle::Ranges;
  std::vector<double> clocks{};  // by rank: seconds by which the clock is ahead; empty: none
  double forward_s = 4e-3;       // of a stage
  int slow_stage = -1;           // takes twice that
  double transfer_s = 3e-4;
  int world_size = 0;                 // 0: the number of ranks
  std::vector<int> numbers{};         // by rank: its number within the job; empty: 0, 1, …
  std::vector<std::string> groups{};  // by rank: the value of "pg_config"; empty: absent
  int steps = 1;
  bool step_ranges = true;
};

inline plan::Timeline simulated(const plan::Schedule& schedule, const SyntheticTraces& made) {
  plan::StageCost cost;
  cost.forward = {made.forward_s};
  cost.input_gradient = cost.weight_gradient = {made.forward_s};
  std::vector<plan::StageCost> stages(static_cast<std::size_t>(plan::stage_count(schedule)), cost);
  if (made.slow_stage >= 0) {
    plan::StageCost& slow = stages[static_cast<std::size_t>(made.slow_stage)];
    slow.forward = slow.input_gradient = slow.weight_gradient = {2 * made.forward_s};
  }
  plan::Cluster cluster;
  cluster.devices_per_node = static_cast<int>(schedule.ranks.size());
  cluster.within_node.latency = {made.transfer_s};
  return std::get<sim::Completed>(sim::simulate(plan::lower(schedule), stages, cluster)).timeline;
}

/// Writes the events of one rank.
class TraceWriter {
 public:
  TraceWriter(const SyntheticTraces& made, int rank) : made_(made) {
    if (!made.clocks.empty())
      clock_ = made.clocks[static_cast<std::size_t>(rank)];
  }

  void add(const char* category, const std::string& name, double start, double end,
           const std::string& thread = "7") {
    events_.push_back(fmt::format(
        R"({{"ph":"X","cat":"{}","name":"{}","pid":7,"tid":{},"ts":{:.3f},"dur":{:.3f}}})",
        category, name, thread, us(start), (end - start) * 1e6));
  }
  void add_arrow_end(char phase, int id, double time) {
    events_.push_back(
        fmt::format(R"({{"ph":"{}","cat":"fwdbwd","name":"fwdbwd","id":{},"pid":7,"tid":7,)"
                    R"("ts":{:.3f}{}}})",
                    phase, id, us(time), phase == 'f' ? R"(,"bp":"e")" : ""));
  }
  std::string text(int rank, int world_size) const {
    const auto at = static_cast<std::size_t>(rank);
    const int number = made_.numbers.empty() ? rank : made_.numbers[at];
    const std::string groups =
        made_.groups.empty() ? "" : R"(,"pg_count":9,"pg_config":)" + made_.groups[at];
    return fmt::format(R"({{"schemaVersion":1,"distributedInfo":{{"backend":"gloo","rank":{},)"
                       R"("world_size":{}{}}},"baseTimeNanoseconds":1790857026000000000,)"
                       "\"traceEvents\":[\n{}\n]}}",
                       number, world_size, groups, fmt::join(events_, ",\n"));
  }

 private:
  double us(double seconds) const { return (seconds + clock_) * 1e6 + 5e6; }

  const SyntheticTraces& made_;
  double clock_ = 0;
  std::vector<std::string> events_;
};

/// Returns one text for each rank.
inline std::vector<std::string> traces_of(const plan::Schedule& schedule,
                                          const SyntheticTraces& made = {}) {
  constexpr double us = 1e-6;
  const plan::Timeline timeline = simulated(schedule, made);
  const auto ranks = static_cast<int>(schedule.ranks.size());
  const plan::Placement placement = plan::placement_of(schedule);
  std::vector<std::string> texts;
  for (int rank = 0; rank < ranks; ++rank) {
    TraceWriter writer(made, rank);
    const int stages = plan::stage_count(schedule);
    for (int step = 0; step < made.steps; ++step) {
      const double begin = step * (timeline.length.value + 1e-3);
      if (made.step_ranges)
        writer.add("user_annotation", fmt::format("ProfilerStep#{}", 4 + step), begin - 100 * us,
                   begin + timeline.length.value + 200 * us);
      double free = begin - 50 * us;  // end of the previous event
      for (const plan::Span& span : timeline.spans) {
        const auto action = plan::parse_action(span.action);
        if (span.rank != rank || !action)
          continue;
        // The operators are shorter than the action, so that transfers fit next to them.
        const double start = begin + span.start.value + 4 * us;
        const double end = begin + span.end.value - 4 * us;
        const bool forward = action->kind == plan::ActionKind::Forward;
        const auto crosses = [&](int stage) {
          return stage >= 0 && stage < stages &&
                 placement.rank_of(stage, action->microbatch) != rank;
        };
        const bool makes_data = action->kind != plan::ActionKind::WeightGradient;
        const bool receives = makes_data && crosses(action->stage + (forward ? -1 : 1));
        const bool sends = makes_data && crosses(action->stage + (forward ? 1 : -1));
        const auto transfer = [&](const char* word) {
          return fmt::format("PP:{}{}_{}{}", action->stage, word, forward ? 'F' : 'B',
                             action->microbatch);
        };
        const int id = 1000 * step + 10 * action->microbatch + 1;
        if (receives) {
          if (made.style == TraceStyle::Ranges)
            writer.add("user_annotation", transfer("RECV"), start - 3.5 * us, start - 2 * us);
          writer.add("cpu_op", "c10d::recv_", start - 3 * us, start - 2 * us);
          writer.add("user_annotation", "gloo:recv", start - 2.5 * us, start - 1 * us);
        }
        if (made.style == TraceStyle::Ranges)
          writer.add("user_annotation", "PP:" + to_string(*action), free, end);
        if (made.style == TraceStyle::MicrobatchRanges)
          writer.add("user_annotation",
                     fmt::format("{} {}", forward ? "Forward" : "Backward", action->microbatch),
                     free, end);
        const double middle = (start + end) / 2;
        if (forward) {
          writer.add("cpu_op", "aten::addmm", start, middle);
          writer.add("cpu_op", "aten::gelu", middle, end);
          writer.add("cpu_op", "aten::copy_", start + us, start + 2 * us);  // inside the first
          writer.add_arrow_end('s', id, start + us);
          writer.add_arrow_end('s', id + 1, middle + us);
        } else {
          const std::string engine = "autograd::engine::evaluate_function: ";
          writer.add("cpu_op", engine + "GeluBackward0", start, middle);
          writer.add("cpu_op", engine + "AddmmBackward0", middle, end);
          writer.add_arrow_end('f', id + 1, start + us);
          writer.add_arrow_end('f', id, middle + us);
        }
        if (sends && made.style == TraceStyle::Ranges)
          writer.add("user_annotation", transfer("SEND"), end + 0.5 * us, end + 3 * us);
        if (sends)
          writer.add("cpu_op", "c10d::send", end + us, end + 2 * us);
        free = end + 2 * us;
      }
    }
    texts.push_back(writer.text(rank, made.world_size == 0 ? ranks : made.world_size));
  }
  return texts;
}

}  // namespace pipewright::test
