#include "commands/torch/training_progress.hpp"

#include <algorithm>
#include <cmath>

namespace pipewright::cli {

void TrainingProgress::begin() {
  if (!begin_)
    begin_ = std::chrono::steady_clock::now();
}

void TrainingProgress::report(int step, const exec::StepResult& result,
                              std::optional<double> evaluation_loss) {
  begin();
  in_steps_ += result.duration.value;
  ++steps_done_;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - *begin_;
  const auto text = fmt::format(
      "{}: step {}/{}  loss {:.4f}  {:.0f} {}/s  {} left", label_, step + 1, steps_, result.loss,
      workload_.units_per_step() * steps_done_ / in_steps_, workload_.unit(),
      duration_text(elapsed.count() / steps_done_ * (steps_ - step - 1)));
  if (evaluation_loss)
    say(workload_.unit() == "tokens"
            ? fmt::format("evaluation after step {}: loss {:.4f}, perplexity {:.2f}", step + 1,
                          *evaluation_loss, std::exp(*evaluation_loss))
            : fmt::format("evaluation after step {}: loss {:.4f}", step + 1, *evaluation_loss));
  const bool tenth = step == 0 || step + 1 == steps_ || (step + 1) % std::max(1, steps_ / 10) == 0;
  if (line_.is_shown() && step + 1 < steps_)
    line_.show(text);
  else if (tenth)
    say(text);
}

}  // namespace pipewright::cli
