#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "straggler/remedy_judge.hpp"

namespace pipewright::trace {
namespace {

constexpr double least_slow = 1.02;     // relative to its peers
constexpr std::size_t most_single = 3;  // workers that are tried alone
constexpr std::size_t most_listed = 8;

double compute_of_worker(const JobSource& source, int worker) {
  return source.mean_compute(worker, Direction::Forward) +
         source.mean_compute(worker, Direction::Backward);
}

class WorkerRemedies {
 public:
  explicit WorkerRemedies(RemedyJudge& judge)
      : judge_(judge), order_(static_cast<std::size_t>(judge.layout().workers())) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int a, int b) { return slower(a) > slower(b); });
    std::erase_if(order_, [&](int worker) { return slower(worker) < least_slow; });
  }

  void run() {
    for (std::size_t at = 0; at < std::min(most_single, order_.size()); ++at)
      replace({order_[at]});
    const auto together = static_cast<std::size_t>(judge_.slowest_workers());
    if (const std::size_t count = std::min(together, order_.size()); count > 1)
      replace({order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(count)});
    if (!order_.empty() && slower(order_.front()) >= clearly_slow)
      leave_out(judge_.layout().replica_of(order_.front()));
  }

 private:
  double slower(int worker) const { return judge_.slower(worker); }

  std::string words(int worker) const {
    return fmt::format("dp {} stage {} (rank {}, {:.2f} times its peers)",
                       judge_.layout().replica_of(worker), judge_.layout().stage_of(worker),
                       judge_.layout().global_rank(worker), slower(worker));
  }

  void replace(const std::vector<int>& workers) {
    JobTimes times = judge_.steps().recorded;
    const auto& nodes = judge_.steps().graph.nodes;
    std::vector<bool> is_one(static_cast<std::size_t>(judge_.layout().workers()));
    for (const int worker : workers)
      is_one[static_cast<std::size_t>(worker)] = true;
    for (NodeNumber node = 0; node < nodes.size(); ++node)
      if (is_compute(nodes[node].operation) && is_one[static_cast<std::size_t>(nodes[node].worker)])
        for (double& time : times.of(node))
          time /= slower(nodes[node].worker);
    judge_.add({.kind = "replace workers",
                .change = change_of(workers),
                .supposed =
                    "another machine computes as fast as the same stage of the other replicas does "
                    "on average"},
               times);
  }

  std::string change_of(const std::vector<int>& workers) const {
    std::vector<std::string> listed;
    for (std::size_t at = 0; at < std::min(most_listed, workers.size()); ++at)
      listed.push_back(words(workers[at]));
    if (workers.size() > most_listed)
      listed.push_back(fmt::format("{} more", workers.size() - most_listed));
    return fmt::format("replace {}", fmt::join(listed, ", "));
  }

  /// Distributes the replica's microbatches round-robin over the others; replicas without an extra
  /// one run one of zero length.
  void leave_out(int replica) {
    const JobPlan& now = judge_.steps().plan;
    const int left = now.layout.replicas - 1, own = now.schedule.microbatches;
    const auto name = plan::known_name(now.schedule);
    if (left < 1 || !name || now.layout.chunks > 1)
      return;
    JobPlan plan = now;
    plan.layout.replicas = left;
    const int microbatches = own + (own + left - 1) / left;
    try {
      plan.schedule =
          plan::make_schedule(name->substr(0, name->find(',')), now.layout.stages, microbatches);
    } catch (const plan::InputError&) {
      return;
    }
    set_transfers(plan);
    const JobGraph graph = make_job_graph(plan);
    judge_.add(
        {.kind = "leave out a replica",
         .change = fmt::format("leave out dp {} with {}; its {} microbatches go to the other "
                               "{} replicas",
                               replica, words(order_.front()), own, left),
         .supposed = "a microbatch takes longer on another replica by the factor by which that is "
                     "slower"},
        graph, without(graph, plan.layout, replica));
  }

  JobTimes without(const JobGraph& graph, const JobLayout& fewer, int replica) const {
    const JobSource& source = judge_.source();
    const JobLayout& layout = judge_.layout();
    JobTimes times(graph.nodes.size(), judge_.steps().recorded.steps());
    for (NodeNumber node = 0; node < graph.nodes.size(); ++node) {
      const JobNode& own = graph.nodes[node];
      const int before = fewer.replica_of(own.worker);
      const int stage = fewer.stage_of(own.worker);
      const int worker = layout.worker(before + (before >= replica ? 1 : 0), stage);
      const auto into = times.of(node);
      if (is_compute(own.operation))
        set_compute(into, own, worker, layout.worker(replica, stage), before, fewer.replicas);
      else if (const NodeNumber* const from = source.find(worker, own.operation, own.index))
        std::copy_n(source.times(*from).begin(), into.size(), into.begin());
    }
    return times;
  }

  void set_compute(std::span<double> into, const JobNode& own, int worker, int left_out, int place,
                   int replicas) const {
    const JobSource& source = judge_.source();
    const int own_count = judge_.steps().plan.schedule.microbatches;
    const Direction direction =
        own.operation == JobOperation::Forward ? Direction::Forward : Direction::Backward;
    if (own.microbatch < own_count) {
      const auto from = source.times(source.compute(worker, direction, 0, own.microbatch));
      std::copy_n(from.begin(), into.size(), into.begin());
      return;
    }
    const int taken = (own.microbatch - own_count) * replicas + place;
    if (taken >= own_count)
      return;
    const auto from = source.times(source.compute(left_out, direction, 0, taken));
    const double speed = slower(worker) / slower(left_out);
    for (std::size_t step = 0; step < into.size(); ++step)
      into[step] = from[step] * speed;
  }

  RemedyJudge& judge_;
  std::vector<int> order_;  // slow workers, slowest first
};

}  // namespace

std::vector<double> over_peers(const JobSteps& steps) {
  const JobLayout& layout = steps.plan.layout;
  const JobSource source(steps);
  std::vector<double> slower(static_cast<std::size_t>(layout.workers()), 1.0);
  for (int stage = 0; stage < layout.stages && layout.replicas > 1; ++stage) {
    double all = 0;
    for (int replica = 0; replica < layout.replicas; ++replica)
      all += compute_of_worker(source, layout.worker(replica, stage));
    for (int replica = 0; replica < layout.replicas; ++replica) {
      const int worker = layout.worker(replica, stage);
      const double own = compute_of_worker(source, worker);
      const double peers = (all - own) / (layout.replicas - 1);
      slower[static_cast<std::size_t>(worker)] = peers > 0 ? own / peers : 1;
    }
  }
  return slower;
}

std::vector<double> own_slowness(const JobSteps& steps) {
  const JobLayout& layout = steps.plan.layout;
  if (layout.stages == 1 || layout.replicas == 1)
    return over_peers(steps);
  const JobSource source(steps);
  std::vector<double> slower(static_cast<std::size_t>(layout.workers()));
  const auto of = [&](int replica, int stage) -> double& {
    return slower[static_cast<std::size_t>(layout.worker(replica, stage))];
  };
  for (int stage = 0; stage < layout.stages; ++stage) {
    double quickest = std::numeric_limits<double>::infinity();
    for (int replica = 0; replica < layout.replicas; ++replica) {
      of(replica, stage) = compute_of_worker(source, layout.worker(replica, stage));
      quickest = std::min(quickest, of(replica, stage));
    }
    for (int replica = 0; replica < layout.replicas; ++replica)
      of(replica, stage) = quickest > 0 ? of(replica, stage) / quickest : 1;
  }
  for (int replica = 0; replica < layout.replicas; ++replica) {
    double common = of(replica, 0);
    for (int stage = 1; stage < layout.stages; ++stage)
      common = std::min(common, of(replica, stage));
    for (int stage = 0; stage < layout.stages; ++stage)
      of(replica, stage) /= common;
  }
  return slower;
}

std::vector<int> slowest_first(const StragglerMetrics& metrics,
                               const std::vector<double>& own_slowness) {
  const auto clearly = [&](int worker) {
    const double slower = own_slowness[static_cast<std::size_t>(worker)];
    return slower >= clearly_slow ? slower : 0;
  };
  std::vector<int> order = metrics.workers;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return clearly(a) > clearly(b); });
  return order;
}

void try_workers(RemedyJudge& judge) { WorkerRemedies(judge).run(); }

}  // namespace pipewright::trace
