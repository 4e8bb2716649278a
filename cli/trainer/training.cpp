#include "training.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>

#include "console.hpp"
#include "interrupt.hpp"
#include "pipewright/exec/checkpoint/check_load.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/exec/rank/serial.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/statistics.hpp"
#include "pipewright/plan/timeline/aligned_timeline.hpp"
#include "pipewright/plan/timeline/clock_offsets.hpp"
#include "pipewright/plan/timeline/trace.hpp"

namespace pipewright::cli {
namespace {

/// Shows where the training stands: a line that moves on a terminal, ten lines elsewhere.
class Reporter {
 public:
  Reporter(std::string label, int steps, const Workload& workload, Talk talk)
      : label_(std::move(label)), steps_(steps), workload_(workload), talk_(talk) {}

  void report(int step, const exec::StepResult& result) {
    if (talk_ == Talk::Silent)
      return;
    in_steps_ += result.duration.value;
    ++steps_done_;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
    const auto text = fmt::format(
        "{}: step {}/{}  loss {:.4f}  {:.0f} {}/s  {} left", label_, step + 1, steps_, result.loss,
        workload_.units_per_step() * steps_done_ / in_steps_, workload_.unit(),
        duration_text(elapsed.count() / steps_done_ * (steps_ - step - 1)));
    const bool tenth =
        step == 0 || step + 1 == steps_ || (step + 1) % std::max(1, steps_ / 10) == 0;
    if (line_.is_shown() && step + 1 < steps_)
      line_.show(text);
    else if (tenth) {
      line_.clear();
      say(text);
    }
  }

 private:
  std::string label_;
  int steps_;
  const Workload& workload_;
  Talk talk_;
  ProgressLine line_;
  double in_steps_ = 0;
  int steps_done_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor left = a.detach().cpu().contiguous(), right = b.detach().cpu().contiguous();
  return left.sizes() == right.sizes() && left.dtype() == right.dtype() &&
         std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// Where training starts from: a checkpoint, or the first weights.
int resume(exec::Executor& executor, const exec::TrainingState& wanted, const Workload& workload,
           const Membership& members, const CheckpointSettings& settings) {
  if (!settings.resume || exec::list_checkpoints(settings.folder).empty()) {
    if (settings.resume)
      members.say_once(
          fmt::format("no checkpoint in {}: starting with step 0", settings.folder.string()));
    return 0;
  }
  // One process looks for it, so that all load the same.
  std::string newest;
  if (members.is_first())
    newest = exec::open_newest(settings.folder, say).folder().string();
  const auto checkpoint = exec::Checkpoint::open(members.from_first(newest));
  const auto check = exec::check_load(checkpoint, exec::shapes_of(workload.setup()), wanted);
  if (!check.obstacles.empty())
    throw plan::InputError(fmt::format("{}: cannot be loaded\n{}", checkpoint.folder().string(),
                                       plan::listed_lines(check.obstacles)));
  for (const std::string& difference : check.differences)
    members.say_once("not bit-identical from here: " + difference);
  executor.restore(checkpoint);
  members.say_once(fmt::format("resumed from {}", checkpoint.folder().string()));
  return static_cast<int>(checkpoint.training().step);
}

/// Writes checkpoints, if any are wanted.
class Saver {
 public:
  Saver(const CheckpointSettings& settings, int steps, const Membership& members)
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

exec::TrainingState wanted_state(const plan::Scenario& scenario, const Plan& plan,
                                 const Workload& workload) {
  return exec::training_state(workload.setup(), plan.program(), scenario.pipeline.replicas, 0,
                              exec::device_in_words(workload.device()));
}

double typical_duration(const std::vector<double>& durations) {
  const std::size_t warm_up = std::min<std::size_t>(2, durations.size() - 1);
  return plan::median({durations.begin() + static_cast<std::ptrdiff_t>(warm_up), durations.end()});
}

}  // namespace

TrainingOutcome train(const plan::Scenario& scenario, const Plan& plan, const Workload& workload,
                      Membership& members, const TrainingWishes& wishes) {
  const CheckpointSettings& checkpoints = wishes.checkpoints;
  exec::Job* const job = members.job();
  TrainingOutcome outcome;
  Recorder recorder(plan.program(), scenario.pipeline.replicas);
  exec::ExecutorOptions options{.observer = recorder.observer(),
                                .stop = &interrupted(),
                                .replicas = scenario.pipeline.replicas,
                                .devices = workload.devices(),
                                .shard_optimizer = scenario.training.zero == 1,
                                .transport = members.transport(),
                                .only_rank = members.rank()};
  if (job != nullptr) {
    options.starting = [job](const plan::Instruction& i) { job->doing(i); };
  } else {
    options.stall = members.stall();
    options.when_stalled = [](const std::string& why) {
      say(why);
      std::_Exit(NegativeAnswer);
    };
  }
  exec::Executor executor(plan.program(), plan.partition, workload.setup(), std::move(options));
  outcome.first_step =
      resume(executor, wanted_state(scenario, plan, workload), workload, members, checkpoints);
  Saver saver(checkpoints, scenario.training.steps, members);
  Reporter reporter("training", scenario.training.steps, workload, wishes.talk);
  std::vector<double> durations;
  for (int step = outcome.first_step; step < scenario.training.steps; ++step) {
    if (wishes.before_step)
      wishes.before_step(step);
    const auto result = executor.step(step);
    if (job != nullptr)
      job->doing("the end of a step");
    if (!result) {
      outcome.interrupted = true;
      break;
    }
    recorder.end_step(result->duration);
    outcome.losses.push_back(result->loss);
    durations.push_back(result->duration.value);
    if (members.is_first())
      reporter.report(step, *result);
    saver.after(step, executor);
  }
  outcome.steps = recorder.steps();
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

plan::Timeline measured_timeline(const TrainingOutcome& outcome, const Membership& members) {
  // The first process says which step is typical.
  std::size_t typical = 0;
  if (members.is_first())
    typical = static_cast<std::size_t>(&typical_step(outcome.steps, outcome.warm_up()) -
                                       outcome.steps.data());
  typical = std::stoul(members.from_first(std::to_string(typical)));
  plan::Timeline all = timeline_of(outcome.steps.at(typical), "measured");
  if (!members.in_job())
    return all;
  const auto texts = members.from_all(plan::to_trace(all));
  if (!members.is_first())
    return {};
  all.spans.clear();
  all.memory.clear();
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const auto own = plan::timeline_from_trace(
        plan::JsonDocument::parse(texts[rank], fmt::format("rank {}", rank)));
    all.spans.insert(all.spans.end(), own.spans.begin(), own.spans.end());
    all.memory.insert(all.memory.end(), own.memory.begin(), own.memory.end());
  }
  const auto clocks = plan::clock_offsets(all.ranks, plan::passages_of(all));
  say(fmt::format("one clock for {} ranks: offsets known to {:.0f} us, {:.0f} us unexplained",
                  all.ranks, clocks.uncertainty.value * 1e6, clocks.residual.value * 1e6));
  return plan::aligned(std::move(all), clocks);
}

bool can_resume(const plan::Scenario& scenario, const Plan& plan, const Workload& workload,
                const std::filesystem::path& folder) {
  const auto checkpoint = exec::open_newest(folder, say);
  const auto check = exec::check_load(checkpoint, exec::shapes_of(workload.setup()),
                                      wanted_state(scenario, plan, workload));
  for (const std::string& obstacle : check.obstacles)
    fmt::print("{}\n", obstacle);
  for (const std::string& difference : check.differences)
    fmt::print("not bit-identical from there: {}\n", difference);
  fmt::print("{} {} be loaded here{}\n", checkpoint.folder().string(),
             check.obstacles.empty() ? "can" : "cannot",
             check.obstacles.empty() && check.differences.empty()
                 ? ", and training continues bit-identically"
                 : "");
  return check.obstacles.empty();
}

SerialOutcome train_serially(const plan::Scenario& scenario, const Workload& workload,
                             const std::vector<int>& gradient_groups, int steps, Talk talk) {
  exec::SerialTrainer serial(workload.setup(), static_cast<int>(gradient_groups.size()),
                             gradient_groups, workload.device());
  Reporter reporter("without a pipeline", scenario.training.steps, workload, talk);
  SerialOutcome outcome;
  for (int step = 0; step < steps; ++step) {
    if (interrupted())
      throw Stopped{};
    const auto result = serial.step(step);
    reporter.report(step, result);
    outcome.losses.push_back(result.loss);
  }
  for (const at::Tensor& parameter : serial.parameters())
    outcome.parameters.push_back(parameter.detach());
  return outcome;
}

Verification compare(const TrainingOutcome& pipelined, const SerialOutcome& serial) {
  Verification found;
  const auto first = static_cast<std::size_t>(pipelined.first_step);
  for (std::size_t at = 0; at < pipelined.losses.size(); ++at) {
    const double expected = serial.losses.at(first + at), loss = pipelined.losses[at];
    ++found.steps;
    if (same_bits(expected, loss))
      ++found.equal_losses;
    else if (found.first_difference.empty())
      found.first_difference = fmt::format(
          "loss of step {}: {:.17g} without a pipeline, {:.17g} with", first + at, expected, loss);
  }
  for (std::size_t p = 0; p < serial.parameters.size(); ++p) {
    ++found.tensors;
    found.parameters += serial.parameters[p].numel();
    if (same_bits(serial.parameters[p], pipelined.parameters.at(p)))
      ++found.equal_tensors;
    else if (found.first_difference.empty())
      found.first_difference = fmt::format("parameter tensor {}", p);
  }
  return found;
}

Verification verify(const plan::Scenario& scenario, const Workload& workload,
                    const TrainingOutcome& pipelined) {
  const int steps = pipelined.first_step + static_cast<int>(pipelined.losses.size());
  return compare(pipelined, train_serially(scenario, workload, pipelined.gradient_groups, steps));
}

void require_verifiable(const plan::Program& program, const plan::Scenario& scenario) {
  if (program.asynchronous)
    throw plan::InputError(
        fmt::format("--verify: {} steps without a flush, which is another training than one "
                    "without a pipeline",
                    scenario.pipeline.schedule));
}

std::string to_string(const Verification& v) {
  auto text = fmt::format(
      "verify: {} of {} losses and {} of {} parameter tensors ({} numbers) are bit-identical to "
      "training without a pipeline",
      v.equal_losses, v.steps, v.equal_tensors, v.tensors, v.parameters);
  if (!v.bit_identical())
    text += "\nverify: first difference: " + v.first_difference;
  return text;
}

}  // namespace pipewright::cli
