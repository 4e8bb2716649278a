#include "training.hpp"

#include <algorithm>
#include <cstring>

#include "console.hpp"
#include "interrupt.hpp"
#include "pipewright/exec/serial.hpp"

namespace pipewright::cli {
namespace {

/// Shows where the training stands: a line that moves on a terminal, ten lines elsewhere.
class Reporter {
 public:
  Reporter(std::string label, int steps, const Workload& workload)
      : label_(std::move(label)), steps_(steps), workload_(workload) {}

  void report(int step, const exec::StepResult& result) {
    elapsed_ += result.duration.value;
    const double per_step = elapsed_ / (step + 1);
    const auto text =
        fmt::format("{}: step {}/{}  loss {:.4f}  {:.0f} {}/s  {} left", label_, step + 1, steps_,
                    result.loss, workload_.units_per_step() / per_step, workload_.unit(),
                    duration_text(per_step * (steps_ - step - 1)));
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
  ProgressLine line_;
  double elapsed_ = 0;
};

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor left = a.detach().contiguous(), right = b.detach().contiguous();
  return left.sizes() == right.sizes() && left.dtype() == right.dtype() &&
         std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

TrainingOutcome train(const plan::Scenario& scenario, const Plan& plan, const Workload& workload) {
  TrainingOutcome outcome;
  Recorder recorder(plan.program(), scenario.pipeline.replicas);
  exec::Executor executor(plan.program(), plan.partition, workload.setup(),
                          {.observer = recorder.observer(),
                           .stop = &interrupted(),
                           .replicas = scenario.pipeline.replicas,
                           .shard_optimizer = scenario.training.zero == 1});
  Reporter reporter("training", scenario.training.steps, workload);
  for (int step = 0; step < scenario.training.steps; ++step) {
    const auto result = executor.step(step);
    if (!result) {
      outcome.interrupted = true;
      break;
    }
    recorder.end_step(result->duration);
    outcome.losses.push_back(result->loss);
    reporter.report(step, *result);
  }
  outcome.parameters = executor.parameters();
  outcome.gradient_groups =
      exec::gradient_groups(plan.program(), workload.setup(), scenario.pipeline.replicas);
  outcome.steps = recorder.steps();
  if (!outcome.steps.empty())
    outcome.units_per_s = workload.units_per_step() /
                          typical_figures(outcome.steps, outcome.warm_up()).iteration.value;
  return outcome;
}

Verification verify(const plan::Scenario& scenario, const Workload& workload,
                    const TrainingOutcome& pipelined) {
  Verification found;
  exec::SerialTrainer serial(workload.setup(),
                             scenario.pipeline.microbatches * scenario.pipeline.replicas,
                             pipelined.gradient_groups);
  Reporter reporter("without a pipeline", scenario.training.steps, workload);
  for (std::size_t step = 0; step < pipelined.losses.size(); ++step) {
    if (interrupted())
      throw Stopped{};
    const auto result = serial.step(static_cast<int>(step));
    reporter.report(static_cast<int>(step), result);
    ++found.steps;
    if (same_bits(result.loss, pipelined.losses[step]))
      ++found.equal_losses;
    else if (found.first_difference.empty())
      found.first_difference =
          fmt::format("loss of step {}: {:.17g} without a pipeline, {:.17g} with", step,
                      result.loss, pipelined.losses[step]);
  }
  const auto parameters = serial.parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    ++found.tensors;
    found.parameters += parameters[p].numel();
    if (same_bits(parameters[p], pipelined.parameters.at(p)))
      ++found.equal_tensors;
    else if (found.first_difference.empty())
      found.first_difference = fmt::format("parameter tensor {}", p);
  }
  return found;
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
