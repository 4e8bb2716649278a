#include "pipewright/trace/straggler/straggler_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "pipewright/plan/generators/schedule_request.hpp"

namespace pipewright::trace {
namespace {

constexpr double least_slowdown = 1.03;  // below which there is no straggler
constexpr double most_of_it = 0.5;       // of the slowdown
constexpr double long_together = 0.9;    // correlation of forwards and backwards
constexpr double unequal = 0.03;         // spread of microbatches
constexpr double worth_saying = 0.01;    // of a step, saved by the remedy of a further cause

std::vector<double> computes_by_worker(const JobSteps& steps) {
  std::vector<double> sums(static_cast<std::size_t>(steps.plan.layout.workers()));
  for (NodeNumber node = 0; node < steps.graph.nodes.size(); ++node)
    if (const JobNode& own = steps.graph.nodes[node]; is_compute(own.operation))
      for (const double time : steps.recorded.of(node))
        sums[static_cast<std::size_t>(own.worker)] +=
            time / static_cast<double>(steps.recorded.steps());
  return sums;
}

struct Cause {
  std::string words;
  double worth = 0;  // fraction of the step that its best remedy saves
};

double best_saving(const Remedies& remedies, std::initializer_list<std::string_view> kinds) {
  double best = 0;
  for (const Remedy& own : remedies.all)
    if (std::find(kinds.begin(), kinds.end(), own.kind) != kinds.end())
      best = std::max(best, own.saves.part);
  return best;
}

void add_slow_workers(const StragglerReport& report, std::vector<Cause>& causes) {
  const int slowest = report.workers.front();
  const double slower = report.own_slowness[static_cast<std::size_t>(slowest)];
  const std::string name = worker_name(report.steps.plan.layout, slowest);
  const double worth = best_saving(report.remedies, {"replace workers", "leave out a replica"});
  if (slower >= clearly_slow)
    causes.push_back(
        {fmt::format("{} computes {:.2f} times as long as the same stage of the others", name,
                     slower),
         worth});
  else if (report.metrics.workers_explain.share >= most_of_it)
    causes.push_back({fmt::format("few workers are slow, {} most", name), worth});
}

void add_slow_stage(const StragglerReport& report, std::vector<Cause>& causes) {
  const auto& by_stage = report.metrics.by_stage;
  const double worth = best_saving(report.remedies, {"move layers"});
  const auto slowest = std::max_element(by_stage.begin(), by_stage.end(),
                                        [](const auto& a, const auto& b) { return a.all < b.all; });
  if (by_stage.size() < 2)
    return;
  if (report.metrics.last_stage_explains.share >= most_of_it)
    causes.push_back({"the last stage is slow: move layers away from it", worth});
  else if (worth >= worth_saying)
    causes.push_back(
        {fmt::format("stage {} is slow: move layers away from it", slowest - by_stage.begin()),
         worth});
}

void add_unequal_lengths(const StragglerReport& report, std::vector<Cause>& causes) {
  const double worth = best_saving(
      report.remedies, {"deal out microbatches", "sort microbatches", "even out microbatches"});
  if (report.lengths.correlation >= long_together && report.lengths.spread >= unequal &&
      (worth >= worth_saying || causes.empty()))
    causes.push_back({"microbatches differ in length", worth});
}

}  // namespace

StragglerReport explain_stragglers(const std::filesystem::path& file,
                                   std::vector<std::string>& problems,
                                   const std::vector<int>& only) {
  JobTrace trace = read_job_trace(file, problems);
  if (!only.empty())
    trace = with_steps(std::move(trace), only);
  return explain_stragglers(trace);
}

StragglerReport explain_stragglers(const JobTrace& trace) {
  StragglerReport report;
  report.file = trace.file;
  report.events = trace.events.size();
  report.events_left_out = trace.left_out;
  report.negative_events = trace.negative;
  report.least_event_s = trace.least_s;
  report.steps = job_steps(trace);
  report.metrics = straggler_metrics(report.steps);
  report.over_peers = over_peers(report.steps);
  report.own_slowness = own_slowness(report.steps);
  report.workers = slowest_first(report.metrics, report.own_slowness);
  report.compute_s = computes_by_worker(report.steps);
  report.lengths = microbatch_lengths(report.steps);
  report.delays = launch_delays(report.steps, report.metrics.replayed_s);
  report.remedies = job_remedies(report.steps, report.metrics);
  report.schedule = plan::known_name(report.steps.plan.schedule).value_or("unknown");
  return report;
}

std::string reading_of(const StragglerReport& report) {
  if (report.metrics.slowdown.all < least_slowdown)
    return "no significant straggler: with ideal durations steps would hardly be shorter";
  std::vector<Cause> causes;
  add_slow_workers(report, causes);
  add_slow_stage(report, causes);
  add_unequal_lengths(report, causes);
  if (causes.empty())
    return "neither few workers nor the last stage alone";
  std::stable_sort(causes.begin(), causes.end(),
                   [](const Cause& a, const Cause& b) { return a.worth > b.worth; });
  std::vector<std::string> said;
  for (const Cause& cause : causes)
    said.push_back(cause.worth < worth_saying
                       ? cause.words
                       : fmt::format("{} (up to {:.1f} %)", cause.words, 100 * cause.worth));
  return fmt::format("{}", fmt::join(said, "; "));
}

}  // namespace pipewright::trace
