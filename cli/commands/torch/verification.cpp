#include "commands/torch/verification.hpp"

#include "commands/torch/training_progress.hpp"
#include "pipewright/plan/error.hpp"
#include "process/interrupt.hpp"

namespace pipewright::cli {

void require_verifiable(const plan::Program& program, const plan::Scenario& scenario) {
  if (!loop::can_verify(program))
    throw plan::InputError(
        fmt::format("--verify: {} steps without a flush, which is another training than one "
                    "without a pipeline",
                    scenario.pipeline.schedule));
}

loop::Verification verify(const plan::Scenario& scenario, const loop::Workload& workload,
                          const loop::TrainingOutcome& pipelined) {
  TrainingProgress progress("without a pipeline", scenario.training.steps, workload);
  progress.begin();
  return loop::verify(
      workload, pipelined, &interrupted(),
      [&](int step, const exec::StepResult& result) { progress.report(step, result); });
}

}  // namespace pipewright::cli
