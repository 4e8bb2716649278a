#include "pipewright/trace/straggler/replay.hpp"

#include <algorithm>
#include <numeric>

namespace pipewright::trace {
namespace {

void raise_begins(std::vector<double>& begins, std::span<const double> ends) {
  for (std::size_t step = 0; step < begins.size(); ++step)
    begins[step] = std::max(begins[step], ends[step]);
}

void raise_begins_later(std::vector<double>& begins, const std::vector<double>& ready,
                        std::span<const double> delays) {
  for (std::size_t step = 0; step < begins.size(); ++step)
    begins[step] = std::max(begins[step], ready[step] + delays[step]);
}

}  // namespace

JobTimes replayed_ends(const JobGraph& graph, const JobTimes& times, const JobTimes* delays) {
  JobTimes ends(graph.nodes.size(), times.steps());
  std::vector<double> begins(times.steps()), ready(times.steps());
  for (std::size_t group = 0; group < graph.groups(); ++group) {
    std::fill(begins.begin(), begins.end(), 0.0);
    for (const NodeNumber node : graph.group(group)) {
      if (delays == nullptr) {
        for (const NodeNumber before : graph.waits_of(node))
          raise_begins(begins, ends.of(before));
        continue;
      }
      std::fill(ready.begin(), ready.end(), 0.0);
      for (const NodeNumber before : graph.waits_of(node))
        raise_begins(ready, ends.of(before));
      raise_begins_later(begins, ready, delays->of(node));
    }
    for (const NodeNumber node : graph.group(group)) {
      const auto own = times.of(node);
      const auto end = ends.of(node);
      for (std::size_t step = 0; step < end.size(); ++step)
        end[step] = begins[step] + own[step];
    }
  }
  return ends;
}

std::vector<double> replayed_steps(const JobGraph& graph, const JobTimes& times,
                                   const JobTimes* delays) {
  const JobTimes ends = replayed_ends(graph, times, delays);
  std::vector<double> steps(times.steps());
  for (const NodeNumber node : graph.last)
    raise_begins(steps, ends.of(node));
  return steps;
}

JobTimes chosen_times(const JobGraph& graph, const JobTimes& times, const JobTimes& others,
                      const std::function<bool(const JobNode&)>& is_one) {
  JobTimes chosen = others;
  for (NodeNumber node = 0; node < graph.nodes.size(); ++node)
    if (is_one(graph.nodes[node]))
      std::copy_n(times.of(node).begin(), times.steps(), chosen.of(node).begin());
  return chosen;
}

double mean_of(const std::vector<double>& values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

}  // namespace pipewright::trace
