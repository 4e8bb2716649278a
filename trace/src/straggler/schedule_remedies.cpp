#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/schedules/schedule_counts.hpp"
#include "straggler/remedy_judge.hpp"

namespace pipewright::trace {
namespace {

constexpr int most_to_order = 512;  // actions, for schedules that search for their order

/// Returns the rank of each stage of the model; nothing if a stage is on several ranks.
std::optional<std::vector<int>> places_of(const plan::Schedule& schedule) {
  std::vector<int> places(static_cast<std::size_t>(plan::stage_count(schedule)), -1);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    for (const plan::Action& action : schedule.ranks[rank]) {
      int& place = places[static_cast<std::size_t>(action.stage)];
      if ((place >= 0 && place != static_cast<int>(rank)) ||
          action.kind == plan::ActionKind::Recompute)
        return {};
      place = static_cast<int>(rank);
    }
  return places;
}

class ScheduleRemedies {
 public:
  explicit ScheduleRemedies(RemedyJudge& judge) : judge_(judge), now_(judge.steps().plan) {
    for (int stage = 0; stage < now_.layout.stages; ++stage)
      for (const Direction direction : both_directions)
        fixed_[direction == Direction::Forward ? 0 : 1].push_back(
            fixed_part(judge, stage, direction));
  }

  void run() {
    for (const plan::ScheduleDescriptor& entry : plan::schedules()) {
      if (!entry.trains_batch() || entry.is_instruction_stream)
        continue;
      for (const int chunks : plan::usual_chunks(entry.chunks))
        if ((now_.layout.chunks == 1 || chunks == now_.layout.chunks) &&
            (!entry.orders_by_times ||
             now_.layout.stages * chunks * now_.schedule.microbatches <= most_to_order))
          add(entry.name, chunks);
    }
  }

 private:
  void add(const std::string& name, int chunks) {
    try {
      JobPlan plan = now_;
      plan::ScheduleRequest request;
      request.name = name;
      request.ranks = now_.layout.stages;
      request.microbatches = now_.schedule.microbatches;
      request.chunks = chunks;
      request.costs = costs(chunks);
      plan.schedule = plan::make_training_schedule(request);
      const auto places = places_of(plan.schedule);
      if (!places || plan.schedule == now_.schedule || was_tried(plan.schedule) ||
          static_cast<int>(places->size()) != chunks * now_.layout.stages)
        return;
      plan.rank_of_stage = *places;
      plan.layout.chunks = chunks;
      set_transfers(plan);
      const JobGraph graph = make_job_graph(plan);
      judge_.add(remedy(name, chunks, plan.schedule), graph, times_of(graph, plan));
    } catch (const plan::InputError&) {
      return;  // the schedule does not support these sizes
    } catch (const plan::Infeasible&) {
      return;
    }
  }

  /// Detects duplicates: for some sizes, several names give the same schedule.
  bool was_tried(const plan::Schedule& schedule) {
    if (std::find(tried_.begin(), tried_.end(), schedule) != tried_.end())
      return true;
    tried_.push_back(schedule);
    return false;
  }

  Remedy remedy(const std::string& name, int chunks, const plan::Schedule& schedule) const {
    const auto peaks = plan::peak_activations(schedule);
    return {.kind = "another schedule",
            .change = chunks == now_.layout.chunks
                          ? "schedule " + name
                          : fmt::format("schedule {}, {} stages on each rank", name, chunks),
            .supposed =
                "the layers of a stage are equal, except for embedding, head and loss; half "
                "of a split backward is input gradient; transfers take "
                "their present mean time; memory is unknown",
            .activations = *std::max_element(peaks.begin(), peaks.end())};
  }

  /// Returns the costs of a microbatch on each stage of the model, as means over the learned steps.
  plan::ScheduleCosts costs(int chunks) const {
    plan::ScheduleCosts costs{.stages = {}};
    for (int stage = 0; stage < chunks * now_.layout.stages; ++stage) {
      const int from = stage_now(stage, chunks);
      const double back =
          judge_.usual_s(from, Direction::Backward) * part_of(stage, chunks, Direction::Backward);
      costs.stages.push_back({plan::Seconds{judge_.usual_s(from, Direction::Forward) *
                                            part_of(stage, chunks, Direction::Forward)},
                              plan::Seconds{back / 2}, plan::Seconds{back / 2}});
    }
    return costs;
  }

  /// Returns the current stage that has the layers of `stage` if each rank has `chunks` stages.
  int stage_now(int stage, int chunks) const {
    return chunks == now_.layout.chunks ? stage % now_.layout.stages : stage / chunks;
  }
  /// Returns the fraction of those layers that it has.
  double part_of(int stage, int chunks, Direction direction) const {
    if (chunks == now_.layout.chunks)
      return 1.0 / chunks;
    const int all = chunks * now_.layout.stages;
    const double fixed = fixed_[direction == Direction::Forward ? 0 : 1]
                               [static_cast<std::size_t>(stage_now(stage, chunks))];
    const bool has_fixed = stage == 0 || stage == all - 1;
    return (1 - fixed) / chunks + (has_fixed ? fixed : 0);
  }

  JobTimes times_of(const JobGraph& graph, const JobPlan& plan) {
    JobTimes times(graph.nodes.size(), judge_.steps().recorded.steps());
    auto action = plan.schedule.ranks.front().begin();
    int worker = -1;
    for (NodeNumber node = 0; node < graph.nodes.size(); ++node) {
      const JobNode& own = graph.nodes[node];
      if (!is_compute(own.operation)) {
        const auto other = other_times(own);
        std::copy(other.begin(), other.end(), times.of(node).begin());
        continue;
      }
      if (own.worker != worker) {  // a worker's computes are its first nodes, in order
        worker = own.worker;
        action =
            plan.schedule.ranks[static_cast<std::size_t>(plan.layout.stage_of(worker))].begin();
      }
      set_compute(times.of(node), *action++, plan.layout, worker);
    }
    return times;
  }

  void set_compute(std::span<double> into, const plan::Action& action, const JobLayout& layout,
                   int worker) const {
    const bool forward = action.kind == plan::ActionKind::Forward;
    const Direction direction = forward ? Direction::Forward : Direction::Backward;
    const bool is_half = !forward && action.kind != plan::ActionKind::Backward;
    const int from = stage_now(action.stage, layout.chunks);
    const int chunk = layout.chunks == now_.layout.chunks ? action.stage / layout.stages : 0;
    const int worker_now = now_.layout.worker(layout.replica_of(worker), from);
    // A slow machine stays in its place, whatever layers it gets.
    const double machine = judge_.slower(worker) / judge_.slower(worker_now);
    const double share =
        layout.chunks == now_.layout.chunks ? 1 : part_of(action.stage, layout.chunks, direction);
    const double part = share * (is_half ? 0.5 : 1) * machine;
    const auto times = judge_.source().times(
        judge_.source().compute(worker_now, direction, chunk, action.microbatch));
    for (std::size_t step = 0; step < into.size(); ++step)
      into[step] = times[step] * part;
  }

  /// Returns the times of other operations. A transfer takes the mean of the worker's current
  /// transfers in the step, or the ideal time.
  std::vector<double> other_times(const JobNode& own) {
    const std::size_t steps = judge_.steps().recorded.steps();
    const NodeNumber* const from = judge_.source().find(own.worker, own.operation, own.index);
    if (from != nullptr && !is_transfer(own.operation)) {
      const auto times = judge_.source().times(*from);
      return {times.begin(), times.end()};
    }
    auto& known = transfers_[{own.worker, own.operation}];
    if (known.empty())
      known = from == nullptr ? std::vector<double>(steps, judge_.ideal_s(own.operation))
                              : mean_transfers(own);
    return known;
  }

  std::vector<double> mean_transfers(const JobNode& own) const {
    const auto nodes = judge_.source().all(own.worker, own.operation);
    std::vector<double> means(judge_.steps().recorded.steps());
    for (const NodeNumber node : nodes)
      for (std::size_t step = 0; step < means.size(); ++step)
        means[step] += judge_.source().times(node)[step] / static_cast<double>(nodes.size());
    return means;
  }

  RemedyJudge& judge_;
  const JobPlan& now_;
  std::vector<plan::Schedule> tried_;
  std::map<std::pair<int, JobOperation>, std::vector<double>> transfers_;  // by step
  std::array<std::vector<double>, 2> fixed_;                               // by direction and stage
};

}  // namespace

void try_schedules(RemedyJudge& judge) {
  if (judge.layout().stages > 1)
    ScheduleRemedies(judge).run();
}

}  // namespace pipewright::trace
