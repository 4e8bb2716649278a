#include "pipewright/trace/straggler/launch_delays.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "pipewright/plan/error.hpp"

namespace pipewright::trace {
namespace {

constexpr double same_s = 1e-6;  // transfers of one call begin and end together
constexpr const char* first_forward = "first-forward";
constexpr const char* joined_transfers = "joined-transfers";

bool is_first_forward(const JobNode& node) {
  return node.operation == JobOperation::Forward && node.index == 0;
}

std::string kind_of(const JobNode& node) {
  return is_first_forward(node) ? first_forward : std::string(type_of(node.operation));
}

bool are_opposite(JobOperation a, JobOperation b) {
  const auto are = [&](JobOperation send, JobOperation receive) {
    return (a == send && b == receive) || (a == receive && b == send);
  };
  return are(JobOperation::ForwardSend, JobOperation::BackwardReceive) ||
         are(JobOperation::BackwardSend, JobOperation::ForwardReceive) ||
         are(JobOperation::ForwardSend, JobOperation::ForwardReceive) ||
         are(JobOperation::BackwardSend, JobOperation::BackwardReceive);
}

class LateBeginsFinder {
 public:
  explicit LateBeginsFinder(const JobSteps& steps) : steps_(steps) { found_.graph = steps.graph; }

  LateBegins find() {
    join_calls();
    find_delays();
    return std::move(found_);
  }

 private:
  const JobNode& node_at(NodeNumber node) const { return steps_.graph.nodes[node]; }

  bool run_together(NodeNumber a, NodeNumber b) const {
    const auto alike = [](std::span<const double> x, std::span<const double> y) {
      return std::equal(x.begin(), x.end(), y.begin(),
                        [](double p, double q) { return std::abs(p - q) < same_s; });
    };
    return are_opposite(node_at(a).operation, node_at(b).operation) &&
           alike(steps_.begins.of(a), steps_.begins.of(b)) &&
           alike(steps_.recorded.of(a), steps_.recorded.of(b));
  }

  void join_calls() {
    std::vector<NodeNumber> transfers;
    for (NodeNumber node = 0; node < steps_.graph.nodes.size(); ++node)
      if (is_transfer(node_at(node).operation))
        transfers.push_back(node);
    const auto place = [&](NodeNumber node) {
      return std::pair(node_at(node).worker, steps_.begins.of(node)[0]);
    };
    std::stable_sort(transfers.begin(), transfers.end(),
                     [&](NodeNumber a, NodeNumber b) { return place(a) < place(b); });
    std::vector<std::pair<NodeNumber, NodeNumber>> joined;
    for (std::size_t at = 1; at < transfers.size(); ++at)
      if (node_at(transfers[at]).worker == node_at(transfers[at - 1]).worker &&
          run_together(transfers[at - 1], transfers[at]))
        joined.emplace_back(transfers[at - 1], transfers[at]);
    try {
      found_.graph = make_job_graph(steps_.plan, joined);
      found_.joined = joined.size();
    } catch (const plan::InputError&) {
      return;  // they cannot have been one call
    }
  }

  double ready(NodeNumber node, std::size_t step) const {
    double ready = 0;
    for (const NodeNumber before : found_.graph.waits_of(node))
      ready = std::max(ready, steps_.begins.of(before)[step] + steps_.recorded.of(before)[step]);
    return ready;
  }

  void find_delays() {
    const JobGraph& graph = found_.graph;
    found_.delays = JobTimes(graph.nodes.size(), steps_.recorded.steps());
    for (std::size_t at = 0; at < graph.groups(); ++at)
      for (std::size_t step = 0; step < found_.delays.steps(); ++step) {
        double all_ready = 0, begin = std::numeric_limits<double>::infinity();
        for (const NodeNumber node : graph.group(at)) {
          all_ready = std::max(all_ready, ready(node, step));
          begin = std::min(begin, steps_.begins.of(node)[step]);
        }
        for (const NodeNumber node : graph.group(at))
          found_.delays.of(node)[step] = begin - all_ready;
      }
  }

  const JobSteps& steps_;
  LateBegins found_;
};

class Delays {
 public:
  Delays(const JobSteps& steps, const std::vector<double>& replayed_s)
      : steps_(steps), replayed_s_(replayed_s), late_(late_begins(steps)) {}

  LaunchDelays find() {
    found_.joined = late_.joined;
    found_.explained_s = replayed_steps(graph_, steps_.recorded, &delays_);
    found_.plain_error = replay_error(replayed_s_, steps_.measured);
    found_.explained_error = replay_error(found_.explained_s, steps_.measured);
    find_kept_error();
    find_kinds();
    return std::move(found_);
  }

 private:
  /// Returns, for all steps, each operation's mean delay over every second step from the first on.
  JobTimes learnt_delays() const {
    JobTimes learnt = delays_;
    for (NodeNumber node = 0; node < graph_.nodes.size(); ++node) {
      double sum = 0;
      int count = 0;
      for (std::size_t step = 0; step < delays_.steps(); step += 2, ++count)
        sum += delays_.of(node)[step];
      std::fill(learnt.of(node).begin(), learnt.of(node).end(), sum / count);
    }
    return learnt;
  }

  void find_kept_error() {
    if (delays_.steps() < 2)
      return;
    const JobTimes learnt = learnt_delays();
    const auto replayed = replayed_steps(graph_, steps_.recorded, &learnt);
    std::vector<double> kept, measured;
    for (std::size_t step = 1; step < replayed.size(); step += 2) {
      kept.push_back(replayed[step]);
      measured.push_back(steps_.measured[step]);
    }
    found_.kept_error = replay_error(kept, measured);
  }

  /// Returns the kinds in the order of a step.
  std::vector<std::string> kinds_in_order() const {
    std::vector<std::string> kinds{std::string(name_of(JobOperation::Gather)), first_forward};
    for (const JobOperation operation : all_job_operations)
      if (const std::string kind{type_of(operation)};
          std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
        kinds.push_back(kind);
    return kinds;
  }

  void find_kinds() {
    double before = mean_of(replayed_s_);
    const auto add = [&](DelayKind kind, double mean_step) {
      kind.explains_s = mean_step - before;
      before = mean_step;
      found_.kinds.push_back(std::move(kind));
    };
    if (found_.joined > 0)
      add({.before = joined_transfers, .count = found_.joined * delays_.steps()},
          mean_of(replayed_steps(graph_, steps_.recorded)));
    JobTimes taken(graph_.nodes.size(), delays_.steps());
    for (const std::string& name : kinds_in_order())
      if (auto kind = take_kind(name, taken))
        add(std::move(*kind), mean_of(replayed_steps(graph_, steps_.recorded, &taken)));
  }

  /// Adds the kind's delays to those of the previous kinds.
  std::optional<DelayKind> take_kind(const std::string& name, JobTimes& taken) const {
    DelayKind kind{.before = name};
    for (std::size_t at = 0; at < graph_.groups(); ++at) {
      const NodeNumber first = graph_.group(at).front();
      if (kind_of(graph_.nodes[first]) != name)
        continue;
      for (const double delay : delays_.of(first)) {
        ++kind.count;
        kind.mean_s += delay;
        kind.longest_s = std::max(kind.longest_s, delay);
      }
      for (const NodeNumber node : graph_.group(at))
        std::copy_n(delays_.of(node).begin(), delays_.steps(), taken.of(node).begin());
    }
    if (kind.count == 0)
      return {};
    kind.mean_s /= static_cast<double>(kind.count);
    return kind;
  }

  const JobSteps& steps_;
  const std::vector<double>& replayed_s_;
  const LateBegins late_;
  const JobGraph& graph_ = late_.graph;
  const JobTimes& delays_ = late_.delays;
  LaunchDelays found_;
};

}  // namespace

double replay_error(const std::vector<double>& replayed, const std::vector<double>& measured) {
  double sum = 0;
  for (std::size_t step = 0; step < replayed.size(); ++step)
    if (replayed[step] > 0)
      sum += std::abs(measured[step] - replayed[step]) / replayed[step];
  return replayed.empty() ? 0 : sum / static_cast<double>(replayed.size());
}

LateBegins late_begins(const JobSteps& steps) { return LateBeginsFinder(steps).find(); }

LaunchDelays launch_delays(const JobSteps& steps, const std::vector<double>& replayed_s) {
  return Delays(steps, replayed_s).find();
}

}  // namespace pipewright::trace
