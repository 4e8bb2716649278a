#include "pipewright/trace/straggler/job_timeline.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/program/instruction.hpp"
#include "pipewright/plan/timeline/timeline_facts.hpp"
#include "pipewright/trace/chrome/chrome_trace.hpp"

namespace pipewright::trace {
namespace {

constexpr double clocks_apart_s = 50e-6;  // spans that overlap by less did not overlap
constexpr const char* all_workers = "all workers";

/// Returns the Program's instruction; nothing for one that takes no time.
std::optional<plan::InstructionKind> kind_of(JobOperation operation) {
  using Does = plan::InstructionKind;
  switch (operation) {
    case JobOperation::Forward:
      return Does::Forward;
    case JobOperation::Backward:
      return Does::Backward;
    case JobOperation::ForwardSend:
      return Does::SendActivation;
    case JobOperation::ForwardReceive:
      return Does::ReceiveActivation;
    case JobOperation::BackwardSend:
      return Does::SendGradient;
    case JobOperation::BackwardReceive:
      return Does::ReceiveGradient;
    case JobOperation::Gather:
      return Does::GatherParameters;
    case JobOperation::Scatter:
      return Does::ScatterGradients;
    case JobOperation::NormSum:
    case JobOperation::SeparateSum:
      return Does::ReduceGradients;
    case JobOperation::EmbeddingSum:
      return Does::ReduceTied;
    case JobOperation::Clip:
      return Does::NormGradients;
    case JobOperation::Optimizer:
      return Does::OptimizerStep;
    case JobOperation::WeightGradient:
      return Does::WeightGradient;
    case JobOperation::GarbageCollection:
      break;
  }
  return {};
}

class TimelineMaker {
 public:
  TimelineMaker(const JobSteps& steps, const std::vector<int>& order)
      : steps_(steps), place_(order.size()) {
    for (std::size_t at = 0; at < order.size(); ++at) {
      place_[static_cast<std::size_t>(order[at])] = static_cast<int>(at);
      names_.push_back(worker_name(steps.plan.layout, order[at]));
    }
    names_.emplace_back(all_workers);
    timeline_.name = "measured";
    timeline_.ranks = static_cast<int>(names_.size());
  }

  void add_step(std::size_t step, double from) {
    for (NodeNumber node = 0; node < steps_.graph.nodes.size(); ++node)
      add(steps_.graph.nodes[node], from + steps_.begins.of(node)[step],
          steps_.recorded.of(node)[step]);
    const double end = from + steps_.measured[step];
    timeline_.spans.push_back({timeline_.ranks - 1, plan::Row::Compute,
                               fmt::format("step {}", steps_.numbers[step]), plan::Seconds{from},
                               plan::Seconds{end}});
    timeline_.length = std::max(timeline_.length, plan::Seconds{end});
  }

  plan::EventTable take() {
    part_computes();
    plan::EventTable table = plan::table_of(timeline_);
    table.rank_names = names_;
    for (plan::EventTrack& track : table.tracks)
      if (track.rank + 1 == table.ranks)
        track.name = plan::steps_track;
      else
        track.name = track.row == plan::Row::Compute
                         ? std::string(pipeline_track)
                         : fmt::format("{} {}", pipeline_track, plan::word_of(track.row));
    return table;
  }

 private:
  void add(const JobNode& node, double begin, double seconds) {
    const auto kind = kind_of(node.operation);
    if (!kind)
      return;
    const JobLayout& layout = steps_.plan.layout;
    const int stage = std::max(0, node.chunk) * layout.stages + layout.stage_of(node.worker);
    const plan::Instruction instruction{
        .kind = *kind, .stage = stage, .microbatch = node.microbatch};
    timeline_.spans.push_back({place_[static_cast<std::size_t>(node.worker)], plan::row_of(*kind),
                               to_string(instruction), plan::Seconds{begin},
                               plan::Seconds{begin + std::max(0.0, seconds)}});
  }

  /// Removes small overlaps between a worker's computes, which come from the noise of their clocks.
  void part_computes() {
    auto& spans = timeline_.spans;
    std::stable_sort(spans.begin(), spans.end(), [](const plan::Span& a, const plan::Span& b) {
      return std::tuple(a.rank, a.row, a.start) < std::tuple(b.rank, b.row, b.start);
    });
    for (std::size_t at = 1; at < spans.size(); ++at) {
      plan::Span& before = spans[at - 1];
      const plan::Span& own = spans[at];
      if (own.rank == before.rank && own.row == before.row && before.end > own.start &&
          (before.end - own.start).value < clocks_apart_s)
        before.end = std::max(before.start, own.start);
    }
  }

  const JobSteps& steps_;
  std::vector<int> place_;  // row of each worker
  std::vector<std::string> names_;
  plan::Timeline timeline_;
};

std::size_t place_of_step(const JobSteps& steps, int number) {
  const auto found = std::find(steps.numbers.begin(), steps.numbers.end(), number);
  if (found == steps.numbers.end())
    throw plan::InputError(fmt::format("step {} is not one of the trace's whole steps: {}", number,
                                       fmt::join(steps.numbers, ", ")));
  return static_cast<std::size_t>(found - steps.numbers.begin());
}

}  // namespace

std::string worker_name(const JobLayout& layout, int worker) {
  return fmt::format("dp {}, stage {} (rank {})", layout.replica_of(worker),
                     layout.stage_of(worker), layout.global_rank(worker));
}

plan::EventTable job_timeline(const JobSteps& steps, const std::vector<int>& order,
                              std::optional<int> only_step) {
  TimelineMaker maker(steps, order);
  if (only_step) {
    maker.add_step(place_of_step(steps, *only_step), 0);
    return maker.take();
  }
  for (std::size_t step = 0; step < steps.numbers.size(); ++step)
    maker.add_step(step, steps.zero[step] - steps.zero.front());
  return maker.take();
}

}  // namespace pipewright::trace
