#include "pipewright/trace/straggler/job_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <span>

#include "pipewright/plan/error.hpp"

namespace pipewright::trace {
namespace {

constexpr double tolerance_s = 50e-6;  // by which clocks of one worker's streams may differ
constexpr std::size_t most_told = 3;   // steps that were left out

/// The events of a step, by worker and operation.
class StepEvents {
 public:
  using Events = std::span<const JobEvent>;

  StepEvents(const JobLayout& layout, Events events)
      : all_(events), events_(static_cast<std::size_t>(layout.workers()) * job_operation_count) {
    for (std::size_t at = 0; at < events.size();) {
      std::size_t end = at;
      while (end < events.size() && slot(events[end]) == slot(events[at]))
        ++end;
      events_[slot(events[at])] = events.subspan(at, end - at);
      at = end;
    }
    for (int worker = 0; worker < layout.workers(); ++worker)
      for (const Direction direction : both_directions)
        drop_strays(worker, direction);
    if (layout.replicas == 1 && layout.ranks_per_worker == 1)
      drop_sums_over_copies(layout);
  }

  Events all() const { return all_; }
  Events of(int worker, JobOperation operation) const { return events_[slot(worker, operation)]; }

  std::vector<int> counts() const {
    std::vector<int> counts;
    for (const Events own : events_)
      counts.push_back(static_cast<int>(own.size()));
    return counts;
  }

 private:
  static std::size_t slot(int worker, JobOperation operation) {
    return static_cast<std::size_t>(worker) * job_operation_count + index_of(operation);
  }
  static std::size_t slot(const JobEvent& event) { return slot(event.worker, event.operation); }

  /// Drops receives after the last compute of their direction, and sends before the first one: they
  /// belong to no compute.
  void drop_strays(int worker, Direction direction) {
    const Events computes = of(worker, compute_of(direction));
    if (computes.empty())
      return;
    Events& receives = events_[slot(worker, receive_of(direction))];
    while (!receives.empty() && receives.back().begin > computes.back().begin + tolerance_s)
      receives = receives.first(receives.size() - 1);
    Events& sends = events_[slot(worker, send_of(direction))];
    const double first = std::min(computes.front().begin + tolerance_s, computes.front().end());
    while (!sends.empty() && sends.front().end() < first)
      sends = sends.subspan(1);
  }

  /// Drops the collectives over replicas, because a single replica has nothing to gather.
  void drop_sums_over_copies(const JobLayout& layout) {
    for (int worker = 0; worker < layout.workers(); ++worker)
      for (const JobOperation operation :
           {JobOperation::Gather, JobOperation::Scatter, JobOperation::SeparateSum})
        events_[slot(worker, operation)] = {};
  }

  Events all_;
  std::vector<Events> events_;
};

class StepsMaker {
 public:
  explicit StepsMaker(const JobTrace& trace) : trace_(trace) {}

  JobSteps make() {
    gather_steps();
    const std::vector<int> most_have = usual_counts();
    std::vector<const StepEvents*> whole;
    for (std::size_t at = 0; at < all_.size(); ++at)
      if (const auto fault = fault_of(all_[at], most_have)) {
        made_.left_out.push_back({trace_.steps[at], *fault});
      } else {
        made_.numbers.push_back(trace_.steps[at]);
        whole.push_back(&all_[at]);
      }
    require_equal_replicas(*whole.front());
    require_optimizers(*whole.front());
    make_plan(*whole.front());
    made_.graph = make_graph();
    lay_out(whole);
    return std::move(made_);
  }

 private:
  /// Also names the first steps that were left out: an event with a wrong step number is in one
  /// step too many, and missing in another.
  [[noreturn]] void refuse(const std::string& what) const {
    std::string text = fmt::format("{}: {}", trace_.file, what);
    for (std::size_t at = 0; at < std::min(most_told, made_.left_out.size()); ++at)
      text += fmt::format("; step {} was left out: {}", made_.left_out[at].number,
                          made_.left_out[at].why);
    throw plan::InputError(text);
  }

  void gather_steps() {
    const std::span<const JobEvent> events(trace_.events);
    std::size_t at = 0;
    for (std::size_t step = 0; step < trace_.steps.size(); ++step) {
      std::size_t end = at;
      while (end < events.size() && events[end].step == static_cast<int>(step))
        ++end;
      all_.emplace_back(trace_.layout, events.subspan(at, end - at));
      at = end;
    }
  }

  /// Returns the number of operations of all workers that most steps have; of equally frequent
  /// ones, those of the first step with the most events.
  std::vector<int> usual_counts() const {
    std::map<std::vector<int>, int> seen;
    int most = 0;
    for (const StepEvents& step : all_)
      most = std::max(most, ++seen[step.counts()]);
    const StepEvents* usual = nullptr;
    for (const StepEvents& step : all_)
      if (seen[step.counts()] == most &&
          (usual == nullptr || step.all().size() > usual->all().size()))
        usual = &step;
    return usual->counts();
  }

  std::optional<std::string> fault_of(const StepEvents& step,
                                      const std::vector<int>& most_have) const {
    const std::vector<int> counts = step.counts();
    const auto [own, expected] = std::mismatch(counts.begin(), counts.end(), most_have.begin());
    if (own == counts.end())
      return {};
    if (step.all().size() == 1) {
      const JobEvent& event = step.all().front();
      return fmt::format("it has only one event, {} of dp {} stage {}", name_of(event.operation),
                         trace_.layout.replica_of(event.worker),
                         trace_.layout.stage_of(event.worker));
    }
    const auto slot = static_cast<std::size_t>(own - counts.begin());
    const auto worker = static_cast<int>(slot / job_operation_count);
    return fmt::format("dp {} stage {} has {} of {}, and {} in most steps",
                       trace_.layout.replica_of(worker), trace_.layout.stage_of(worker), *own,
                       name_of(all_job_operations[slot % job_operation_count]), *expected);
  }

  void require_equal_replicas(const StepEvents& step) const {
    const JobLayout& layout = trace_.layout;
    for (int worker = 0; worker < layout.workers(); ++worker) {
      const int first = layout.worker(0, layout.stage_of(worker));
      for (const JobOperation operation : all_job_operations)
        if (step.of(worker, operation).size() != step.of(first, operation).size())
          refuse(fmt::format("dp {} stage {} has {} of {} in a step, and dp 0 has {}",
                             layout.replica_of(worker), layout.stage_of(worker),
                             step.of(worker, operation).size(), name_of(operation),
                             step.of(first, operation).size()));
    }
  }

  /// A step ends with the optimizers: either all workers have them, or none.
  void require_optimizers(const StepEvents& step) const {
    const JobLayout& layout = trace_.layout;
    const auto count = [&](int stage) {
      return step.of(layout.worker(0, stage), JobOperation::Optimizer).size();
    };
    for (int stage = 1; stage < layout.stages; ++stage)
      if (count(stage) != count(0))
        refuse(fmt::format("stage {} has {} of {} in a step, and stage 0 has {}", stage,
                           count(stage), name_of(JobOperation::Optimizer), count(0)));
  }

  void make_plan(const StepEvents& step) {
    made_.plan.layout = trace_.layout;
    for (int stage = 0; stage < trace_.layout.stages; ++stage) {
      const int worker = trace_.layout.worker(0, stage);
      made_.plan.schedule.ranks.push_back(actions_of(step, worker, stage));
      made_.plan.shapes.push_back(shape_of(step, worker));
    }
    require_all_microbatches();
  }

  /// Numbers the microbatches in the order in which they pass through a chunk, per direction.
  std::vector<plan::Action> actions_of(const StepEvents& step, int worker, int stage) {
    std::vector<const JobEvent*> computes;
    for (const Direction direction : both_directions)
      for (const JobEvent& event : step.of(worker, compute_of(direction)))
        computes.push_back(&event);
    std::stable_sort(computes.begin(), computes.end(),
                     [](const auto* a, const auto* b) { return a->begin < b->begin; });
    std::map<std::pair<JobOperation, int>, int> counted;
    std::vector<plan::Action> actions;
    for (const JobEvent* const event : computes) {
      const int chunk = chunk_of(*event);
      const int microbatch = counted[{event->operation, chunk}]++;
      made_.plan.schedule.microbatches = std::max(made_.plan.schedule.microbatches, microbatch + 1);
      actions.push_back({event->operation == JobOperation::Forward ? plan::ActionKind::Forward
                                                                   : plan::ActionKind::Backward,
                         chunk * trace_.layout.stages + stage, microbatch});
    }
    return actions;
  }

  int chunk_of(const JobEvent& event) const {
    if (event.chunk >= trace_.layout.chunks)
      refuse(fmt::format("{} of chunk {}, and forwards of {} chunks", name_of(event.operation),
                         event.chunk, trace_.layout.chunks));
    return std::max(0, event.chunk);
  }

  WorkerShape shape_of(const StepEvents& step, int worker) const {
    WorkerShape shape;
    for (const JobOperation operation : all_job_operations)
      shape.count[index_of(operation)] = static_cast<int>(step.of(worker, operation).size());
    std::vector<const JobEvent*> queue;
    for (const JobOperation operation : {JobOperation::Gather, JobOperation::Scatter})
      for (const JobEvent& event : step.of(worker, operation))
        queue.push_back(&event);
    std::stable_sort(queue.begin(), queue.end(),
                     [](const auto* a, const auto* b) { return a->begin < b->begin; });
    for (const JobEvent* const event : queue)
      shape.queue.push_back({event->operation, chunk_of(*event)});
    return shape;
  }

  void require_all_microbatches() const {
    const auto& [layout, schedule, shapes, places] = made_.plan;
    if (schedule.microbatches == 0)
      refuse(fmt::format("no step has a {} or {}", name_of(JobOperation::Forward),
                         name_of(JobOperation::Backward)));
    const std::int64_t all = std::int64_t{layout.chunks} * schedule.microbatches;
    for (int stage = 0; stage < layout.stages; ++stage)
      for (const Direction direction : both_directions)
        if (const int count = computes_of(made_.plan, stage, direction); count != all)
          refuse(
              fmt::format("stage {} has {} of {} in a step; {} microbatches through {} chunks "
                          "are {}",
                          stage, count, name_of(compute_of(direction)), schedule.microbatches,
                          layout.chunks, all));
  }

  JobGraph make_graph() const {
    try {
      return make_job_graph(made_.plan);
    } catch (const plan::InputError& error) {
      refuse(error.what());
    }
  }

  void lay_out(const std::vector<const StepEvents*>& whole) {
    made_.recorded = JobTimes(made_.graph.nodes.size(), whole.size());
    made_.begins = made_.recorded;
    for (std::size_t step = 0; step < whole.size(); ++step) {
      double first = std::numeric_limits<double>::infinity(), last = -first;
      for (const JobEvent& event : whole[step]->all()) {
        first = std::min(first, event.begin);
        last = std::max({last, event.begin, event.end()});
      }
      made_.measured.push_back(last - first);
      made_.zero.push_back(first);
      for (NodeNumber node = 0; node < made_.graph.nodes.size(); ++node) {
        const JobNode& own = made_.graph.nodes[node];
        const JobEvent& event =
            whole[step]->of(own.worker, own.operation)[static_cast<std::size_t>(own.index)];
        made_.recorded.of(node)[step] = event.seconds;
        made_.begins.of(node)[step] = event.begin - first;
      }
    }
  }

  const JobTrace& trace_;
  JobSteps made_;
  std::vector<StepEvents> all_;
};

}  // namespace

JobSteps job_steps(const JobTrace& trace) { return StepsMaker(trace).make(); }

}  // namespace pipewright::trace
