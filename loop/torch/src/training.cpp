#include "pipewright/loop_torch/training.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <exception>
#include <map>

#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/plan/statistics.hpp"

namespace pipewright::loop {
namespace {

/// Writes checkpoints, if any are wanted.
class Saver {
 public:
  Saver(const CheckpointSettings& settings, int steps, const Membership& members, const Say& say)
      : settings_(settings), steps_(steps) {
    if (settings.folder.empty())
      return;
    exec::CheckpointOptions options;
    options.part = members.rank().value_or(0);
    options.parts = static_cast<int>(members.from_all(std::string()).size());
    options.job = members.from_first(exec::new_job_id());
    options.keep = settings.keep;
    options.report = say;
    writer_ = std::make_unique<exec::CheckpointWriter>(settings.folder, std::move(options));
  }
  ~Saver() {
    if (writer_ && std::uncaught_exceptions() > 0)
      writer_->abandon();
  }

  void after(int step, const exec::Executor& executor) {
    const int done = step + 1;
    if (writer_ && (done == steps_ || (settings_.every > 0 && done % settings_.every == 0)))
      writer_->save(executor.snapshot(done));
  }
  void finish() {
    if (writer_)
      writer_->wait();
  }

 private:
  CheckpointSettings settings_;
  int steps_;
  std::unique_ptr<exec::CheckpointWriter> writer_;
};

/// The parameters of all ranks, in the order of layers: empty but on the first process.
std::vector<at::Tensor> all_parameters(const exec::Executor& executor, const Membership& members) {
  if (!members.in_job())
    return executor.parameters();
  exec::Tensors mine{at::Tensor()};
  std::vector<std::int64_t> layers;
  for (const exec::LayerState& layer : executor.snapshot(0).layers)
    for (const exec::NamedTensor& parameter : layer.parameters) {
      layers.push_back(layer.index);
      mine.push_back(parameter.value);
    }
  mine.front() = at::tensor(layers, at::kLong);
  std::multimap<std::int64_t, at::Tensor> sorted;  // equal keys stay in order
  for (const exec::Tensors& theirs : members.from_all(mine))
    for (std::size_t t = 1; t < theirs.size(); ++t)
      sorted.emplace(theirs.front()[static_cast<std::int64_t>(t) - 1].item<std::int64_t>(),
                     theirs[t]);
  std::vector<at::Tensor> parameters;
  if (members.is_first())
    for (const auto& [layer, parameter] : sorted)
      parameters.push_back(parameter);
  return parameters;
}

double typical_duration(const std::vector<double>& durations) {
  const std::size_t warm_up = std::min<std::size_t>(2, durations.size() - 1);
  return plan::median({durations.begin() + static_cast<std::ptrdiff_t>(warm_up), durations.end()});
}

/// Tells it what ranks begin and end, beside whom these were told so far.
void watch(KernelSteps& kernels, exec::ExecutorOptions& options) {
  options.starting = [&kernels, before = options.starting](const plan::Instruction& i) {
    if (before)
      before(i);
    kernels.starting(i);
  };
  options.observer = [&kernels, before = options.observer](const exec::InstructionRecord& record) {
    kernels.ended(record);
    before(record);
  };
}

}  // namespace

TrainingOutcome train(const plan::Scenario& scenario, const Plan& plan, const Workload& workload,
                      Membership& members, const TrainingWishes& wishes) {
  const CheckpointSettings& checkpoints = wishes.checkpoints;
  exec::Job* const job = members.job();
  TrainingOutcome outcome;
  Recorder recorder(plan.program(), scenario.pipeline.replicas);
  std::optional<KernelSteps> kernels;
  if (wishes.kernels != nullptr)
    kernels.emplace(*wishes.kernels, plan.program());
  exec::ExecutorOptions options{.observer = recorder.observer(),
                                .stop = wishes.stop,
                                .cuda_graphs = scenario.training.cuda_graphs,
                                .replicas = scenario.pipeline.replicas,
                                .devices = workload.devices(),
                                .transport = members.transport(),
                                .only_rank = members.rank()};
  if (job != nullptr) {
    options.starting = [job](const plan::Instruction& i) { job->doing(i); };
  } else if (wishes.give_up) {
    options.stall = wishes.stall;
    options.when_stalled = wishes.give_up;
  }
  if (kernels)
    watch(*kernels, options);
  exec::Executor executor(plan.program(), plan.partition, workload.setup(), std::move(options));
  const Say say = wishes.say ? wishes.say : [](const std::string&) {};
  if (checkpoints.resume)
    outcome.first_step =
        resume(executor, scenario, plan, workload, members, checkpoints.folder, say);
  Saver saver(checkpoints, scenario.training.steps, members, say);
  std::vector<double> durations;
  for (int step = outcome.first_step; step < scenario.training.steps; ++step) {
    if (wishes.before_step)
      wishes.before_step(step);
    if (kernels)
      kernels->begin_step();
    const auto result = executor.step(step);
    if (job != nullptr)
      job->doing("the end of a step");
    if (!result) {
      outcome.interrupted = true;
      break;
    }
    recorder.end_step(*result);
    if (kernels)
      kernels->end_step(result->duration);
    outcome.losses.push_back(result->loss);
    durations.push_back(result->duration.value);
    if (wishes.after_step && members.is_first())
      wishes.after_step(step, *result);
    if (wishes.after_record && members.is_first())
      wishes.after_record(recorder.steps().back());
    saver.after(step, executor);
  }
  outcome.steps = recorder.steps();
  if (kernels)
    outcome.kernels = kernels->take();
  if (!durations.empty())
    outcome.units_per_s = workload.units_per_step() / typical_duration(durations);
  if (outcome.interrupted)
    return outcome;
  if (job != nullptr)
    job->doing("its end");
  saver.finish();
  if (wishes.verified)
    outcome.parameters = all_parameters(executor, members);
  outcome.gradient_groups =
      exec::gradient_groups(plan.program(), workload.setup(), scenario.pipeline.replicas);
  return outcome;
}

}  // namespace pipewright::loop
