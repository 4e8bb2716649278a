#include "print/draws_table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "pipewright/plan/quantity_text.hpp"

namespace pipewright::cli {
namespace {

std::string in_words(const sim::SampledRange& range) {
  return std::isfinite(range.high_s)
             ? fmt::format("{} to {}", plan::time_text(range.low_s), plan::time_text(range.high_s))
             : fmt::format("{} or more", plan::time_text(range.low_s));
}

std::string in_words(const sim::SampledRanges& ranges) {
  std::string text =
      fmt::format("90 % confidence intervals for {} other steps: mean {}, P50 {}, P95 {}\n",
                  ranges.steps, in_words(ranges.mean), in_words(ranges.p50), in_words(ranges.p95));
  if (!std::isfinite(ranges.p95.high_s))
    text += fmt::format(
        "{} steps are too few for an upper bound: with a probability of {:.0f} % none of them is "
        "among the longest 5 %\n",
        ranges.steps, 100 * ranges.unseen);
  return text;
}

}  // namespace

std::string draws_table(const sim::Draws& draws, const sim::SampledRanges& ranges,
                        const sim::SamplingOptions& options, const sim::Jitter& jitter) {
  const sim::JitterCorrelation& together = jitter.together();
  return fmt::format(
      "{} samples of {} recorded steps (seed {}): mean {}, P50 {}, P95 {}, P99 {}\n{}the ranks of "
      "a pipeline take the same step in {:.0f} % of the samples, all "
      "pipelines in {:.0f} %\n",
      draws.sorted().size(), jitter.steps(), options.seed, plan::time_text(draws.mean()),
      plan::time_text(draws.percentile(0.50)), plan::time_text(draws.percentile(0.95)),
      plan::time_text(draws.percentile(0.99)), in_words(ranges), 100 * together.ranks,
      100 * together.pipelines);
}

std::string draws_table(const trace::SampledSteps& days) {
  std::string text =
      fmt::format("\n{} samples of the steps: mean {}, P50 {}, P95 {}, P99 {}\n", days.draws,
                  plan::time_text(days.mean_s), plan::time_text(days.p50_s),
                  plan::time_text(days.p95_s), plan::time_text(days.p99_s));
  if (days.ranges.steps > 0)
    text += in_words(days.ranges);
  const auto line = [&](const char* name, const trace::SampledFigure& day) {
    text += fmt::format("  {:<4}  {:>10} sampled  {:>10} measured  {:>+6.2f} %  {}{}\n", name,
                        plan::time_text(day.sampled_s), plan::time_text(day.measured_s),
                        100 * day.error(), in_words(day.range),
                        day.range.has(day.measured_s) ? "" : ": missed");
  };
  if (days.kept_steps == 0)
    return text;
  text += fmt::format("every second step, compared with the {} others:\n", days.kept_steps);
  line("mean", days.kept_mean);
  line("P50", days.kept_p50);
  line("P95", days.kept_p95);
  return text;
}

plan::Json draws_json(const sim::Draws& draws, const sim::SampledRanges& ranges,
                      const sim::SamplingOptions& options, const sim::Jitter& jitter) {
  return {{"count", draws.sorted().size()},
          {"seed", options.seed},
          {"recorded_steps", jitter.steps()},
          {"ranks_together", jitter.together().ranks},
          {"pipelines_together", jitter.together().pipelines},
          {"mean_s", draws.mean()},
          {"p50_s", draws.percentile(0.50)},
          {"p95_s", draws.percentile(0.95)},
          {"p99_s", draws.percentile(0.99)},
          {"other_steps", sim::to_json(ranges)}};
}

}  // namespace pipewright::cli
