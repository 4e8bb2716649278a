// Generates the trace of a synthetic job: a test sets the durations of its workers' operations, and
// a replay determines when they begin.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/trace/straggler/replay.hpp"

namespace pipewright::test {

/// Seconds that an operation takes in a step, or by which it begins late.
using OfOperation = std::function<double(const trace::JobNode&, int step)>;

struct SyntheticJob {
  plan::Schedule schedule;  // of one replica
  int replicas = 2;
  int chunks = 1;
  int ranks_per_worker = 1;
  std::vector<int> steps{23, 25};
  OfOperation seconds{};
  OfOperation delay = [](const trace::JobNode&, int) { return 0.0; };
  bool sums_during_backwards = false;  // with the separate sum after them
  bool outer_transfers = false;        // each compute has its send and its receive
  double every_s = 10;                 // seconds between the begins of steps

  trace::JobPlan plan() const {
    trace::JobPlan plan;
    plan.schedule = schedule;
    plan.layout = {.replicas = replicas,
                   .stages = static_cast<int>(schedule.ranks.size()),
                   .chunks = chunks,
                   .ranks_per_worker = ranks_per_worker};
    plan.shapes.resize(schedule.ranks.size());
    set_transfers(plan);
    for (int stage = 0; stage < plan.layout.stages; ++stage)
      plan.shapes[static_cast<std::size_t>(stage)] = shape(plan, stage);
    return plan;
  }

  /// Returns the trace, with events placed by the replay.
  std::string trace() const {
    const trace::JobPlan own = plan();
    const trace::JobGraph graph = trace::make_job_graph(own);
    trace::JobTimes times(graph.nodes.size(), steps.size()), delays = times;
    for (trace::NodeNumber node = 0; node < graph.nodes.size(); ++node)
      for (std::size_t step = 0; step < steps.size(); ++step) {
        times.of(node)[step] = seconds(graph.nodes[node], static_cast<int>(step));
        delays.of(node)[step] = delay(graph.nodes[node], static_cast<int>(step));
      }
    const trace::JobTimes ends = replayed_ends(graph, times, &delays);
    std::vector<std::string> events = metadata(own.layout);
    for (std::size_t step = 0; step < steps.size(); ++step)
      for (trace::NodeNumber node = 0; node < graph.nodes.size(); ++node)
        events.push_back(
            event(own.layout, graph.nodes[node], steps[step],
                  static_cast<double>(step) * every_s + ends.of(node)[step] - times.of(node)[step],
                  times.of(node)[step]));
    return fmt::format("[{}]", fmt::join(events, ",\n"));
  }

  static std::string event(const trace::JobLayout& layout, const trace::JobNode& node, int step,
                           double begin, double length) {
    return fmt::format(
        R"({{"name":"{0}","cat":"{0}","pid":{1},"tid":{2},"ts":{3},"dur":{4},"ph":"X",)"
        R"("args":{{"step":{5},"model_chunk":{6},"mb_id":{7},"seq_id":{8}}}}})",
        name_of(node.operation), layout.replica_of(node.worker),
        5 * layout.global_rank(node.worker) + row(node.operation), begin * 1e6, length * 1e6, step,
        trace::is_transfer(node.operation) ? -1 : node.chunk, node.microbatch, node.index);
  }

  static int row(trace::JobOperation operation) {
    return trace::is_alone(operation) ? 0 : trace::is_transfer(operation) ? 1 : 3;
  }

  static std::vector<std::string> metadata(const trace::JobLayout& layout) {
    std::vector<std::string> events;
    for (int worker = 0; worker < layout.workers(); ++worker)
      for (int row = 0; row < 5; ++row)
        events.push_back(fmt::format(R"({{"name":"thread_name","pid":{},"tid":{},"ph":"M",)"
                                     R"("args":{{"name":"PP rank {}, TP rank 0, row"}}}})",
                                     layout.replica_of(worker),
                                     5 * layout.global_rank(worker) + row,
                                     layout.stage_of(worker)));
    return events;
  }

 private:
  trace::WorkerShape shape(const trace::JobPlan& plan, int stage) const {
    using Does = trace::JobOperation;
    trace::WorkerShape own = plan.shapes[static_cast<std::size_t>(stage)];
    if (outer_transfers)
      for (const trace::Direction direction : trace::both_directions)
        for (const Does transfer : {trace::send_of(direction), trace::receive_of(direction)})
          own.count[trace::index_of(transfer)] = trace::computes_of(plan, stage, direction);
    for (const Does once : {Does::GarbageCollection, Does::NormSum, Does::Clip, Does::Optimizer})
      own.count[trace::index_of(once)] = 1;
    if (stage == 0 || stage + 1 == plan.layout.stages)
      own.count[trace::index_of(Does::EmbeddingSum)] = 1;
    own.count[trace::index_of(Does::SeparateSum)] = sums_during_backwards ? 1 : 0;
    if (replicas * ranks_per_worker > 1) {
      for (int chunk = 0; chunk < chunks; ++chunk)
        own.queue.push_back({Does::Gather, chunk});
      for (int chunk = chunks; chunk-- > 0;)
        own.queue.push_back({Does::Scatter, chunk});
    }
    return own;
  }
};

/// Returns a 1F1B job with a little noise, in which one worker computes 1.3 times as long as its
/// peers.
inline SyntheticJob noisy_job(int replicas, int stages, int microbatches, std::vector<int> steps,
                              int slow_worker) {
  const auto noise = [](const trace::JobNode& node, int step) {
    std::uint32_t mixed =
        static_cast<std::uint32_t>(node.worker * 131 + node.index * 31 + step) * 16 +
        static_cast<std::uint32_t>(node.operation);
    mixed *= 2654435761U;  // Knuth's multiplicative hash
    return 1 + 0.02 * static_cast<double>(mixed >> 16U) / 65536;
  };
  return {.schedule = plan::make_schedule("1f1b", stages, microbatches),
          .replicas = replicas,
          .steps = std::move(steps),
          .seconds = [=](const trace::JobNode& node, int step) {
            const double ms = trace::is_transfer(node.operation)                         ? 0.2
                              : node.operation == trace::JobOperation::GarbageCollection ? 0
                              : node.operation == trace::JobOperation::Forward           ? 10
                              : node.operation == trace::JobOperation::Backward          ? 20
                                                                                         : 2;
            const bool slow = trace::is_compute(node.operation) && node.worker == slow_worker;
            return ms * 1e-3 * noise(node, step) * (slow ? 1.3 : 1);
          }};
}

}  // namespace pipewright::test
