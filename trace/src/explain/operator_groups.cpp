#include "explain/operator_groups.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace pipewright::trace {
namespace {

using Operator = PipelineEvents::Operator;

/// A run of consecutive forward operators, or of consecutive operators of the autograd engine.
struct Run {
  bool is_backward = false;
  std::vector<const Operator*> operators;
};

/// Returns the runs. Forward operators are those at which an arrow starts: the others prepare data
/// or belong to the optimizer step.
std::vector<Run> runs_of(const PipelineEvents& events, double start, double end) {
  std::vector<Run> runs;
  bool apart = true;  // a transfer separates this operator from the last one
  const auto before = [](const Operator& own, double time) { return own.start < time; };
  for (auto next =
           std::lower_bound(events.operators.begin(), events.operators.end(), start, before);
       next != events.operators.end() && next->start < end; ++next) {
    const Operator& own = *next;
    if (own.kind == OperatorKind::Collective)
      continue;
    if (own.kind == OperatorKind::Send || own.kind == OperatorKind::Receive) {
      apart = true;
      continue;
    }
    const bool is_backward = own.kind == OperatorKind::Engine;
    if (!is_backward) {
      const auto arrow = std::lower_bound(events.arrows.begin(), events.arrows.end(), own.start,
                                          [](const auto& a, double time) { return a.from < time; });
      if (arrow == events.arrows.end() || arrow->from > own.end)
        continue;
    }
    if (apart || runs.back().is_backward != is_backward)
      runs.push_back({is_backward, {}});
    runs.back().operators.push_back(&own);
    apart = false;
  }
  return runs;
}

/// Finds the run at an instant.
class RunsByTime {
 public:
  explicit RunsByTime(const std::vector<Run>& runs) {
    for (std::size_t run = 0; run < runs.size(); ++run)
      for (const Operator* own : runs[run].operators)
        places_[own->start] = {own, run};
  }
  struct Place {
    const Operator* own = nullptr;
    std::size_t run = 0;
  };
  const Place* find(double time) const {
    auto place = places_.upper_bound(time);
    if (place == places_.begin())
      return nullptr;
    --place;
    return place->second.own->end >= time ? &place->second : nullptr;
  }

 private:
  std::map<double, Place> places_;
};

/// A microbatch: arrows lead from the run of its forward to that of its backward.
struct Microbatch {
  double forward_start = 0, forward_end = 0, backward_start = 0, backward_end = 0;
};
/// Keyed by the runs of its forward and its backward.
using Microbatches = std::map<std::pair<std::size_t, std::size_t>, Microbatch>;

Microbatches microbatches_of(const PipelineEvents& events, const std::vector<Run>& runs,
                             double start, double end) {
  const RunsByTime by_time(runs);
  Microbatches microbatches;
  const auto first =
      std::lower_bound(events.arrows.begin(), events.arrows.end(), start,
                       [](const auto& arrow, double time) { return arrow.from < time; });
  for (auto arrow = first; arrow != events.arrows.end() && arrow->from < end; ++arrow) {
    const auto* const from = by_time.find(arrow->from);
    const auto* const to = by_time.find(arrow->to);
    if (from == nullptr || to == nullptr || runs[from->run].is_backward ||
        !runs[to->run].is_backward)
      continue;  // from another step, or from a recomputation during a backward
    const Microbatch begun{from->own->start, from->own->end, to->own->start, to->own->end};
    Microbatch& own = microbatches.try_emplace({from->run, to->run}, begun).first->second;
    own.forward_start = std::min(own.forward_start, begun.forward_start);
    own.forward_end = std::max(own.forward_end, begun.forward_end);
    own.backward_start = std::min(own.backward_start, begun.backward_start);
    own.backward_end = std::max(own.backward_end, begun.backward_end);
  }
  return microbatches;
}

/// Sorts microbatches by their forwards. If a run of backward operators belongs to a single
/// microbatch, all of the run does, because its last operators have no arrows.
std::vector<Microbatch> by_forward(const Microbatches& microbatches, const std::vector<Run>& runs) {
  std::map<std::size_t, int> uses;  // of the runs of backwards
  for (const auto& [pair, own] : microbatches)
    ++uses[pair.second];
  std::vector<Microbatch> ordered;
  for (const auto& [pair, own] : microbatches) {
    ordered.push_back(own);
    if (uses[pair.second] == 1) {
      ordered.back().backward_start = runs[pair.second].operators.front()->start;
      ordered.back().backward_end = runs[pair.second].operators.back()->end;
    }
  }
  std::sort(ordered.begin(), ordered.end(), [](const Microbatch& a, const Microbatch& b) {
    return a.forward_start < b.forward_start;
  });
  return ordered;
}

}  // namespace

std::optional<std::vector<OperatorGroup>> operator_groups(const PipelineEvents& events,
                                                          double start, double end) {
  const auto runs = runs_of(events, start, end);
  const auto ordered = by_forward(microbatches_of(events, runs, start, end), runs);
  std::vector<OperatorGroup> groups;
  for (std::size_t m = 0; m < ordered.size(); ++m) {
    const Microbatch& own = ordered[m];
    groups.push_back({false, static_cast<int>(m), own.forward_start, own.forward_end});
    groups.push_back({true, static_cast<int>(m), own.backward_start, own.backward_end});
  }
  std::sort(groups.begin(), groups.end(),
            [](const OperatorGroup& a, const OperatorGroup& b) { return a.start < b.start; });
  for (std::size_t next = 1; next < groups.size(); ++next)
    if (groups[next].start < groups[next - 1].end)
      return {};
  return groups;
}

}  // namespace pipewright::trace
