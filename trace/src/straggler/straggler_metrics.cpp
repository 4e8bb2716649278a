#include "pipewright/trace/straggler/straggler_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "pipewright/plan/statistics.hpp"

namespace pipewright::trace {
namespace {

constexpr double slow_part = 0.03;  // of the workers

std::array<double, job_operation_count> ideal_lengths(const JobSteps& steps) {
  std::array<std::vector<double>, job_operation_count> lengths;
  for (NodeNumber node = 0; node < steps.graph.nodes.size(); ++node) {
    auto& own = lengths[index_of(steps.graph.nodes[node].operation)];
    const auto times = steps.recorded.of(node);
    own.insert(own.end(), times.begin(), times.end());
  }
  std::array<double, job_operation_count> ideal{};
  for (const JobOperation operation : all_job_operations) {
    const auto& own = lengths[index_of(operation)];
    ideal[index_of(operation)] = is_alone(operation) ? mean_of(own) : plan::median(own);
  }
  return ideal;
}

double quotient(double part, double whole) { return whole == 0 ? 1 : part / whole; }

class Metrics {
 public:
  explicit Metrics(const JobSteps& steps) : steps_(steps) {}

  StragglerMetrics find() {
    found_.ideal_s = ideal_lengths(steps_);
    ideal_ = ideal_times(steps_.graph, found_.ideal_s, steps_.recorded.steps());
    found_.replayed_s = replayed_steps(steps_.graph, steps_.recorded);
    found_.ideal_step_s = replayed_steps(steps_.graph, ideal_);
    found_.slowdown = slowdown_of(found_.replayed_s);
    find_by_operation();
    find_by_place();
    find_by_worker();
    find_shares();
    return std::move(found_);
  }

 private:
  Slowdown slowdown_of(const std::vector<double>& step_s) const {
    Slowdown slowdown{.all = quotient(mean_of(step_s), mean_of(found_.ideal_step_s))};
    for (std::size_t step = 0; step < step_s.size(); ++step)
      slowdown.by_step.push_back(quotient(step_s[step], found_.ideal_step_s[step]));
    return slowdown;
  }

  /// Returns the slowdown if all operations are ideal except those that satisfy `is_recorded`.
  Slowdown only(const std::function<bool(const JobNode&)>& is_recorded) const {
    return slowdown_of(replayed_steps(
        steps_.graph, chosen_times(steps_.graph, steps_.recorded, ideal_, is_recorded)));
  }

  void find_by_operation() {
    std::set<std::string> types;
    for (const JobNode& node : steps_.graph.nodes)
      types.insert(std::string(type_of(node.operation)));
    for (const std::string& type : types)
      found_.by_operation[type] =
          only([&](const JobNode& node) { return type_of(node.operation) == type; });
  }

  void find_by_place() {
    const JobLayout& layout = steps_.plan.layout;
    for (int stage = 0; stage < layout.stages; ++stage)
      found_.by_stage.push_back(
          only([&](const JobNode& node) { return layout.stage_of(node.worker) == stage; }));
    find_by_replica();
  }

  /// Replays each replica against one ideal replica, which stands for all the others because they
  /// are identical, so that any number of replicas is replayed in the time of two jobs.
  void find_by_replica() {
    JobPlan pair = steps_.plan;
    pair.layout.replicas = std::min(2, pair.layout.replicas);
    const JobGraph graph = make_job_graph(pair);
    const auto nodes = static_cast<NodeNumber>(
        steps_.graph.nodes.size() / static_cast<std::size_t>(steps_.plan.layout.replicas));
    JobTimes times = ideal_times(graph, found_.ideal_s, steps_.recorded.steps());
    for (int replica = 0; replica < steps_.plan.layout.replicas; ++replica) {
      const auto first = static_cast<NodeNumber>(replica) * nodes;
      for (NodeNumber node = 0; node < nodes; ++node)
        std::copy_n(steps_.recorded.of(first + node).begin(), times.steps(),
                    times.of(node).begin());
      found_.by_replica.push_back(slowdown_of(replayed_steps(graph, times)));
    }
  }

  void find_by_worker() {
    const JobLayout& layout = steps_.plan.layout;
    for (int worker = 0; worker < layout.workers(); ++worker)
      found_.by_worker.push_back(
          std::min(found_.by_replica[static_cast<std::size_t>(layout.replica_of(worker))].all,
                   found_.by_stage[static_cast<std::size_t>(layout.stage_of(worker))].all));
    found_.workers.resize(found_.by_worker.size());
    std::iota(found_.workers.begin(), found_.workers.end(), 0);
    const auto slowdown = [&](int worker) {
      return found_.by_worker[static_cast<std::size_t>(worker)];
    };
    std::stable_sort(found_.workers.begin(), found_.workers.end(),
                     [&](int a, int b) { return slowdown(a) > slowdown(b); });
    found_.slowest_workers =
        static_cast<int>(std::ceil(slow_part * static_cast<double>(found_.workers.size())));
  }

  void find_shares() {
    std::vector<bool> is_slow(found_.workers.size());
    for (int at = 0; at < found_.slowest_workers; ++at)
      is_slow[static_cast<std::size_t>(found_.workers[static_cast<std::size_t>(at)])] = true;
    found_.workers_explain = share_of([&](const JobNode& node) {
      return static_cast<bool>(is_slow[static_cast<std::size_t>(node.worker)]);
    });
    const JobLayout& layout = steps_.plan.layout;
    found_.last_stage_explains = share_of(
        [&](const JobNode& node) { return layout.stage_of(node.worker) == layout.stages - 1; });
  }

  ExplainedShare share_of(const std::function<bool(const JobNode&)>& is_one) const {
    const double recorded = mean_of(found_.replayed_s), ideal = mean_of(found_.ideal_step_s);
    const auto mean_step = [&](const JobTimes& times) {
      return mean_of(replayed_steps(steps_.graph, times));
    };
    ExplainedShare own{
        .without_s = mean_step(chosen_times(steps_.graph, ideal_, steps_.recorded, is_one)),
        .with_s = mean_step(chosen_times(steps_.graph, steps_.recorded, ideal_, is_one))};
    if (recorded != ideal) {
      own.share = (recorded - own.without_s) / (recorded - ideal);
      own.added = (own.with_s - ideal) / (recorded - ideal);
    }
    return own;
  }

  const JobSteps& steps_;
  JobTimes ideal_;
  StragglerMetrics found_;
};

}  // namespace

StragglerMetrics straggler_metrics(const JobSteps& steps) { return Metrics(steps).find(); }

JobTimes ideal_times(const JobGraph& graph, const std::array<double, job_operation_count>& ideal,
                     std::size_t steps) {
  JobTimes times(graph.nodes.size(), steps);
  for (NodeNumber node = 0; node < graph.nodes.size(); ++node)
    std::fill_n(times.of(node).begin(), steps, ideal[index_of(graph.nodes[node].operation)]);
  return times;
}

}  // namespace pipewright::trace
