#include "pipewright/loop_torch/training.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <sstream>

#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/exec/checkpoint/mapped_file.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/exec/transport/transport.hpp"
#include "pipewright/loop_torch/slow_ranks.hpp"
#include "pipewright/plan/cluster/goodput.hpp"
#include "pipewright/plan/generators/evaluation_program.hpp"
#include "pipewright/plan/statistics.hpp"

namespace pipewright::loop {
namespace {

/// Approximate start of this program. A restart would also spend the time before its first step.
const auto program_start = std::chrono::steady_clock::now();

/// Writes checkpoints, if they are enabled.
class Saver {
 public:
  Saver(const CheckpointSettings& settings, int steps, const Membership& members, const Say& say)
      : settings_(settings), steps_(steps), members_(members), say_(say) {
    if (settings.folder.empty())
      return;
    exec::CheckpointOptions options;
    options.part = members.rank().value_or(0);
    options.parts = static_cast<int>(members.from_all(std::string()).size());
    options.job = members.from_first(exec::new_job_id());
    options.keep = settings.keep;
    options.report = say;
    if (members.transport())
      options.require_going = [transport = members.transport()] { transport->require_going(); };
    writer_ = std::make_unique<exec::CheckpointWriter>(settings.folder, std::move(options));
  }
  ~Saver() {
    if (writer_ && std::uncaught_exceptions() > 0)
      writer_->abandon();
  }

  void after(int step, const exec::Executor& executor, const std::vector<double>& durations) {
    const int done = step + 1;
    const bool measures = settings_.between_failures.value > 0 && settings_.every == 0 &&
                          durations.size() == measured_steps;
    if (!writer_ ||
        !(done == steps_ || measures || (settings_.every > 0 && done % settings_.every == 0)))
      return;
    const auto began = std::chrono::steady_clock::now();
    save(executor.snapshot(done, /*copied=*/false));
    if (measures)
      choose_interval(began, durations.back());
  }
  void finish() {
    if (writer_)
      wait();
  }

 private:
  /// Waits until the current write ends, or the job does.
  void wait() {
    writer_->wait();
    if (members_.transport())
      members_.transport()->require_going();
  }

  /// Writes a checkpoint in the background if memory suffices for a copy, and otherwise waits for
  /// it.
  void save(exec::Snapshot snapshot) {
    wait();  // The previous write may still hold a copy.
    const bool fits = exec::has_room_for_copy(snapshot);
    writer_->save(fits ? exec::copies_of(std::move(snapshot)) : std::move(snapshot));
    if (!fits)
      wait();
  }

  /// Chooses the interval between checkpoints on the first process, for all. Waits for the first
  /// checkpoint.
  void choose_interval(std::chrono::steady_clock::time_point began, double step_s) {
    wait();
    const std::chrono::duration<double> write = std::chrono::steady_clock::now() - began;
    const plan::FailureCosts costs{.checkpoint = {write.count()},
                                   .between_failures = settings_.between_failures};
    const double best = plan::best_checkpoint_interval(costs).value / step_s;
    const int own = static_cast<int>(std::clamp(std::round(best), 1.0, 1e9));
    settings_.every = std::stoi(members_.from_first(std::to_string(own)));
    if (members_.is_first())
      say_(fmt::format("a checkpoint takes {:.3g} s and a step {:.3g} s: one every {} steps",
                       write.count(), step_s, settings_.every));
  }

  static constexpr std::size_t measured_steps = 3;

  CheckpointSettings settings_;
  int steps_;
  const Membership& members_;
  const Say& say_;
  std::unique_ptr<exec::CheckpointWriter> writer_;
};

/// Returns the parts of all parameters and buffers, preceded by rows that describe them (layer and
/// tensor-parallel cut) and by their names.
exec::Tensors with_places(const exec::Snapshot& snapshot) {
  exec::Tensors all(2);
  std::vector<std::int64_t> rows;
  std::string names;
  for (const exec::LayerState& layer : snapshot.layers)
    for (const exec::NamedTensor& parameter : layer.parameters) {
      const exec::TensorPart& part = parameter.part;
      rows.insert(rows.end(), {layer.index, part.index, part.count, part.dimension, part.blocks,
                               part.length, part.experts});
      names += parameter.name + '\n';
      all.push_back(parameter.value);
    }
  all[0] = at::tensor(rows, at::kLong).reshape({-1, 7});
  all[1] = at::tensor(std::vector<std::uint8_t>(names.begin(), names.end()), at::kByte);
  return all;
}

exec::TensorPart part_of(const at::TensorAccessor<std::int64_t, 1>& row) {
  return {.dimension = static_cast<int>(row[3]),
          .blocks = static_cast<int>(row[4]),
          .length = row[5],
          .index = static_cast<int>(row[1]),
          .count = static_cast<int>(row[2]),
          .experts = static_cast<int>(row[6])};
}

/// The parts of one tensor, by their index.
struct TensorParts {
  exec::TensorPart cut;
  std::map<int, at::Tensor> values;
};

/// Joins the parts that the ranks returned from `with_places`.
exec::LayerTensors joined_by_name(const std::vector<exec::Tensors>& of_ranks) {
  std::map<exec::LayerTensors::key_type, TensorParts> parts;
  for (const exec::Tensors& theirs : of_ranks) {
    const auto rows = theirs[0].accessor<std::int64_t, 2>();
    std::istringstream names(std::string(exec::text_of(theirs[1])));
    for (std::int64_t t = 0; t < rows.size(0); ++t) {
      std::string name;
      std::getline(names, name);
      TensorParts& all = parts[{static_cast<int>(rows[t][0]), std::move(name)}];
      all.cut = part_of(rows[t]);
      all.values[all.cut.index] = theirs[static_cast<std::size_t>(t) + 2];
    }
  }
  exec::LayerTensors whole;
  for (const auto& [name, all] : parts) {
    exec::Tensors values;
    for (const auto& [index, value] : all.values)
      values.push_back(value);
    whole[name] = exec::joined(values, all.cut);
  }
  return whole;
}

/// Returns the parameters and buffers of all ranks, on the first process only.
exec::LayerTensors all_parameters(const exec::Executor& executor, const Membership& members) {
  if (!members.in_job())
    return joined_by_name({with_places(executor.snapshot(0, /*copied=*/false))});
  const auto of_ranks = members.from_all(with_places(executor.snapshot(0)));
  return members.is_first() ? joined_by_name(of_ranks) : exec::LayerTensors();
}

double typical_duration(const std::vector<double>& durations) {
  const std::size_t warm_up = std::min<std::size_t>(2, durations.size() - 1);
  return plan::median({durations.begin() + static_cast<std::ptrdiff_t>(warm_up), durations.end()});
}

/// A training in progress.
class Trainer {
 public:
  Trainer(const plan::Scenario& scenario, const Plan& plan, const Workload& workload,
          Membership& members, const TrainingOptions& options)
      : scenario_(scenario),
        plan_(plan),
        workload_(workload),
        members_(members),
        options_(options),
        recorder_(plan.program(), grid_of(scenario.pipeline)),
        slow_ranks_(scenario, plan, members),
        kernels_(kernels()),
        evaluation_(evaluation()),
        executor_(plan.program(), plan.partition, workload.setup(), execution()) {}

  TrainingOutcome run() {
    const int steps = scenario_.training.steps;
    if (options_.checkpoints.resume)
      outcome_.first_step = resume(executor_, scenario_, plan_, workload_, members_,
                                   options_.checkpoints.folder, say());
    const Say told = say();
    Saver saver(options_.checkpoints, steps, members_, told);
    for (int step = outcome_.first_step; step < steps; ++step) {
      outcome_.interrupted = !train_step(step);
      if (outcome_.interrupted)
        break;
      saver.after(step, executor_, durations_);
    }
    note_steps();
    if (!outcome_.interrupted)
      finish(saver);
    return std::move(outcome_);
  }

 private:
  std::optional<KernelSteps> kernels() const {
    if (options_.kernels == nullptr)
      return {};
    return std::optional<KernelSteps>(std::in_place, *options_.kernels, plan_.program());
  }

  plan::Program evaluation() const {
    if (scenario_.training.evaluate_every == 0)
      return {};
    return plan::evaluation_program(plan_.program(), plan_.program().microbatches,
                                    scenario_.pipeline.replicas);
  }

  Say say() const {
    return options_.say ? options_.say : [](const std::string&) {};
  }

  /// Tells the job what this process is doing, for its reports of hangs.
  template <class Activity>
  void doing(const Activity& activity) {
    if (exec::Job* const job = members_.job())
      job->doing(activity);
  }

  exec::ExecutorOptions execution() {
    exec::ExecutorOptions options{.stop = options_.stop,
                                  .cuda_graphs = scenario_.training.cuda_graphs,
                                  .read_ahead = scenario_.data.read_ahead,
                                  .dynamic_shapes = workload_.dynamic_shapes(),
                                  .replicas = scenario_.pipeline.replicas,
                                  .shards = scenario_.pipeline.tensor,
                                  .expert_ranks = scenario_.pipeline.expert,
                                  .axes = scenario_.pipeline.axes,
                                  .devices = workload_.devices(),
                                  .transport = members_.transport(),
                                  .only_rank = members_.rank()};
    options.observer = [this, record = recorder_.observer()](const exec::InstructionRecord& r) {
      if (evaluates_)
        return;
      if (kernels_)
        kernels_->ended(r);
      slow_ranks_.ran(r);
      record(r);
    };
    if (kernels_ || members_.in_job())
      options.starting = [this](const plan::Instruction& i) {
        doing(i);
        if (kernels_ && !evaluates_)
          kernels_->starting(i);
      };
    if (!members_.in_job() && options_.give_up) {
      options.stall = options_.stall;
      options.when_stalled = options_.give_up;
    }
    return options;
  }

  /// Trains one step. Returns false if it was stopped.
  bool train_step(int step) {
    if (options_.before_step)
      options_.before_step(step);
    if (kernels_)
      kernels_->begin_step();
    const bool continues = step + 1 < scenario_.training.steps && !evaluates_after(step);
    const auto result = executor_.step(step, {.continues = continues});
    doing("the end of a step");
    if (!result)
      return false;
    recorder_.end_step(*result);
    look_at_pace(step, result->duration.value);
    if (kernels_)
      kernels_->end_step(result->duration);
    outcome_.losses.push_back(result->loss);
    durations_.push_back(result->duration.value);
    const auto evaluation = evaluate_after(step);
    if (evaluates_after(step) && !evaluation)
      return false;
    if (options_.after_step && members_.is_first())
      options_.after_step({step, *result, recorder_.steps().back(),
                           exec::learning_rate_at(workload_.setup().optimizer, step), evaluation,
                           slow_ranks_.words()});
    return true;
  }

  /// Reports slow ranks. Throws SlowRankEnds if this process's rank is persistently slow and should
  /// leave.
  void look_at_pace(int step, double step_s) {
    slow_ranks_.end_step(step_s, say());
    if (!members_.in_job() || options_.checkpoints.folder.empty())
      return;
    if (!permanent_straggler_)
      permanent_straggler_.emplace(PermanentStragglerSettings{
          .place = options_.slow_place,
          .rank = *members_.rank(),
          .pipeline_ranks = scenario_.pipeline.ranks,
          .restart_s =
              std::chrono::duration<double>(std::chrono::steady_clock::now() - program_start)
                  .count(),
          .newest_step = [this] { return exec::newest_step(options_.checkpoints.folder); }});
    const auto why = permanent_straggler_->end_step(slow_ranks_.slow_pace(*members_.rank()), step_s,
                                                    scenario_.training.steps - step - 1, say());
    if (why)
      throw SlowRankEnds(*why);
  }

  bool evaluates_after(int step) const {
    const int every = scenario_.training.evaluate_every;
    return every > 0 && (step + 1) % every == 0;
  }

  /// Returns the loss of the evaluation after this step, or nothing if there is none or it was
  /// stopped.
  std::optional<double> evaluate_after(int step) {
    if (!evaluates_after(step))
      return {};
    doing("an evaluation");
    evaluates_ = true;
    const auto evaluation = executor_.evaluate(evaluation_, *workload_.evaluation(),
                                               step / scenario_.training.evaluate_every);
    evaluates_ = false;
    if (!evaluation)
      return {};
    outcome_.evaluations[step] = evaluation->loss;
    return evaluation->loss;
  }

  void note_steps() {
    outcome_.steps = recorder_.steps();
    if (kernels_)
      outcome_.kernels = kernels_->take();
    if (!durations_.empty())
      outcome_.units_per_s = workload_.units_per_step() / typical_duration(durations_);
  }

  void finish(Saver& saver) {
    doing("its end");
    saver.finish();
    if (options_.verified)
      outcome_.parameters = all_parameters(executor_, members_);
    outcome_.gradient_groups =
        exec::gradient_groups(plan_.program(), workload_.setup(), scenario_.pipeline.replicas);
  }

  const plan::Scenario& scenario_;
  const Plan& plan_;
  const Workload& workload_;
  Membership& members_;
  const TrainingOptions& options_;
  Recorder recorder_;
  SlowRanks slow_ranks_;
  std::optional<PermanentStraggler> permanent_straggler_;  // set after the first step
  std::optional<KernelSteps> kernels_;
  plan::Program evaluation_;
  exec::Executor executor_;
  TrainingOutcome outcome_;
  std::atomic<bool> evaluates_{false};  // an evaluation is running, whose records belong to no step
  std::vector<double> durations_;       // of the steps, in seconds
};

}  // namespace

TrainingOutcome train(const plan::Scenario& scenario, const Plan& plan, const Workload& workload,
                      Membership& members, const TrainingOptions& options) {
  return Trainer(scenario, plan, workload, members, options).run();
}

}  // namespace pipewright::loop
