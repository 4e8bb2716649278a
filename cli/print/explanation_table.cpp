#include "print/explanation_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "pipewright/trace/explain/job_layout.hpp"

namespace pipewright::cli {
namespace {

constexpr std::size_t most_alternatives = 6;  // of any kind, plus one of each kind

std::string ms(double seconds) { return fmt::format("{:.3f}", seconds * 1e3); }

std::string source_words(const trace::TracedPipeline& pipeline) {
  const std::string device = pipeline.on_device ? ", times of the device" : "";
  switch (pipeline.source) {
    case trace::ActionSource::Ranges:
      return "ranges called PP:…" + device;
    case trace::ActionSource::MicrobatchRanges:
      return "ranges called Forward … and Backward …" + device;
    case trace::ActionSource::Passing:
      return "from the ranges of Megatron-LM's sends and receives" + device;
    case trace::ActionSource::Functions:
      return "from functions and transfers" + device;
    case trace::ActionSource::Operators:
      return "no ranges: from operators, arrows and transfers" + device;
  }
  return {};
}

std::string head(const trace::TraceExplanation& own) {
  const trace::TracedPipeline& pipeline = own.pipeline;
  std::string text;
  if (own.schedule.name.empty())
    text +=
        own.schedule.nearest.empty()
            ? "schedule    unknown: no known schedule has these sizes\n"
            : fmt::format("schedule    unknown; nearest {}, {:.0f} % equal: {}\n",
                          own.schedule.nearest, 100 * own.schedule.alike, own.schedule.difference);
  else
    text += fmt::format("schedule    {}, {} ranks, {} stages, {} microbatches\n", own.schedule.name,
                        pipeline.timeline.ranks, own.costs.stages.size(),
                        pipeline.schedule.microbatches);
  text += fmt::format("step        {}, of {} complete; {}\n", pipeline.step_index, pipeline.steps,
                      source_words(pipeline));
  text += fmt::format("iteration   {} ms; simulated with its own costs {} ms\n",
                      ms(pipeline.timeline.length.value), ms(own.alternatives.now_s));
  double apart = 0;
  for (const double offset : pipeline.clock_s)
    apart = std::max(apart, std::abs(offset));
  if (apart > 0)
    text += fmt::format("clocks      corrected by up to {} ms{}\n", ms(apart),
                        std::isfinite(pipeline.clock_uncertainty_s)
                            ? fmt::format(", accurate to {} ms", ms(pipeline.clock_uncertainty_s))
                            : ", with unknown accuracy: transfers go only one way");
  return text;
}

constexpr std::size_t most_ranks_listed = 8;

std::string listed_ranks(const std::vector<int>& ranks) {
  if (ranks.size() <= most_ranks_listed)
    return fmt::format("{}", fmt::join(ranks, ", "));
  return fmt::format("{}, {}, …, {}", ranks[0], ranks[1], ranks.back());
}

/// Returns a line for each pipeline, if there are several.
std::string pipeline_table(const trace::JobExplanation& job) {
  if (job.pipelines.size() == 1)
    return {};
  std::size_t widest = std::string_view("pipeline").size();
  for (const trace::ExplainedPipeline& own : job.pipelines)
    widest = std::max(widest, trace::to_string(own.place).size());
  std::string text = fmt::format("{:<{}}{:>16}{:>12}{:>9}{:>12}{:>12}  ranks\n", "pipeline", widest,
                                 "iteration, ms", "actions", "busiest", "busy", "mean busy");
  for (std::size_t at = 0; at < job.pipelines.size(); ++at) {
    const trace::ExplainedPipeline& own = job.pipelines[at];
    const std::size_t busiest = busiest_rank(own);
    text += fmt::format("{:<{}}{:>16}{:>12}{:>9}{:>12}{:>12}  {}{}\n", trace::to_string(own.place),
                        widest, ms(own.iteration_s), ms(own.actions_s), own.ranks[busiest],
                        ms(own.busy_s[busiest]), ms(mean_busy_s(own)), listed_ranks(own.ranks),
                        at == job.slowest ? "  slowest" : "");
  }
  return text +
         fmt::format("\nthe slowest, {}:\n", trace::to_string(job.pipelines[job.slowest].place));
}

/// Returns "0", "1", … for a single pipeline; for one of several "6 (pipe 1, data 2)".
std::vector<std::string> rank_labels(const trace::JobExplanation& job) {
  const trace::ExplainedPipeline& own = job.pipelines[job.slowest];
  std::vector<std::string> labels;
  for (std::size_t rank = 0; rank < own.ranks.size(); ++rank)
    labels.push_back(job.pipelines.size() == 1
                         ? fmt::format("{}", rank)
                         : fmt::format("{} ({})", own.ranks[rank], place_of_rank(own, rank)));
  return labels;
}

std::size_t widest_of(const std::vector<std::string>& labels) {
  std::size_t widest = 0;
  for (const std::string& label : labels)
    widest = std::max(widest, label.size());
  return widest;
}

std::string rank_table(const trace::TraceExplanation& own, const std::vector<std::string>& labels) {
  const std::size_t width = std::max<std::size_t>(6, widest_of(labels));
  std::vector<std::size_t> causes;
  for (std::size_t cause = 0; cause < plan::idle_cause_count; ++cause)
    if (std::any_of(own.ranks.begin(), own.ranks.end(),
                    [&](const auto& rank) { return rank.idle[cause].value > 0; }))
      causes.push_back(cause);
  std::string text = fmt::format("\n{:<{}}{:>12}", "rank", width, "busy, ms");
  for (const std::size_t cause : causes)
    text += fmt::format("{:>12}", plan::idle_causes()[cause]);
  text += fmt::format("{:>12}{:>12}\n", "waiting", "moving");
  for (std::size_t rank = 0; rank < own.ranks.size(); ++rank) {
    const trace::TracedRankTimes& times = own.ranks[rank];
    text += fmt::format("{:<{}}{:>12}", labels[rank], width, ms(times.busy_s));
    for (const std::size_t cause : causes)
      text += fmt::format("{:>12}", ms(times.idle[cause].value));
    text += fmt::format("{:>12}{:>12}\n", ms(times.waiting_s), ms(times.moving_s));
  }
  return text;
}

std::string stage_table(const trace::TraceExplanation& own,
                        const std::vector<std::string>& labels) {
  const std::size_t width = std::max<std::size_t>(6, widest_of(labels));
  std::string text = fmt::format("\n{:<6}{:>{}}{:>14}{:>14}{:>12}\n", "stage", "rank", width,
                                 "forward, ms", "backward", "all");
  for (std::size_t stage = 0; stage < own.costs.stages.size(); ++stage) {
    const trace::TracedStage& times = own.costs.stages[stage];
    text += fmt::format("{:<6}{:>{}}{:>14}{:>14}{:>12}{}\n", stage,
                        labels[static_cast<std::size_t>(times.rank)], width, ms(times.forward),
                        ms(times.backward), ms(times.total),
                        static_cast<int>(stage) == own.slowest_stage
                            ? fmt::format("  slowest: {:.2f} times the mean", own.slowest_over_mean)
                            : "");
  }
  return text;
}

/// Shortens a list of equal numbers, which is as long as the batch has microbatches.
std::string shortened(std::string change) {
  const auto list = change.find("=[");
  if (list != std::string::npos && change.size() > 60 &&
      change.find("lengths") != std::string::npos)
    change.replace(list + 2, std::string::npos, change.substr(list + 2, 3) + ",…]");
  return change;
}

/// Returns "pipeline.schedule=zbv pipeline.chunks=2" without the values.
std::string what_changes(const std::string& change) {
  std::string fields;
  bool is_value = false;
  for (const char letter : change) {
    is_value = letter == '=' || (is_value && letter != ' ');
    if (!is_value)
      fields += letter;
  }
  return fields;
}

/// Describes stage boundaries by actions, because layer numbers are known only to the scenario.
std::string cut_words(const trace::Alternative& change) {
  std::string text = fmt::format("with {} stages begin at\n", change.change);
  for (std::size_t stage = 1; stage <= change.cut.size(); ++stage)
    text += fmt::format("- {}: in the traced {}\n", stage, to_string(change.cut[stage - 1]));
  return text;
}

std::string alternative_table(const trace::TraceExplanation& own) {
  const trace::Alternatives& found = own.alternatives;
  std::string text =
      fmt::format("\n{:>14}{:>9}{:>13}  simulated\n", "iteration, ms", "saves", "activations");
  text += fmt::format("{:>14}{:>9}{:>13}  as it is\n", ms(found.now_s), "", found.activations);
  // Shows the fastest changes, and the fastest of each kind.
  std::size_t shown = 0;
  std::set<std::string> kinds;
  for (const trace::Alternative& change : found.all) {
    if (change.iteration_s >= found.now_s)
      break;
    if (!kinds.insert(what_changes(change.change)).second && shown >= most_alternatives)
      continue;
    ++shown;
    text += fmt::format("{:>14}{:>7.1f} %{:>13}  {}\n", ms(change.iteration_s),
                        100 * (1 - change.iteration_s / found.now_s), change.activations,
                        shortened(change.change));
  }
  for (const trace::Alternative& change : found.all)
    if (change.change.starts_with("pipeline.partition=[") && change.iteration_s < found.now_s)
      text += cut_words(change);
  if (shown == 0)
    text += "none of the simulated changes saves time\n";
  text += "\nassumptions:\n";
  for (const std::string& assumption : own.costs.assumptions)
    text += "- " + assumption + "\n";
  return text;
}

}  // namespace

std::string explanation_table(const trace::JobExplanation& job) {
  const trace::TraceExplanation& slowest = job.explanation;
  const auto labels = rank_labels(job);
  return pipeline_table(job) + head(slowest) + rank_table(slowest, labels) +
         stage_table(slowest, labels) + alternative_table(slowest);
}

}  // namespace pipewright::cli
