#include "pipewright/trace/straggler/straggler_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/generators/schedule_request.hpp"

namespace pipewright::trace {
namespace {

constexpr double least_slowdown = 1.03;  // below which there is no straggler
constexpr double most_of_it = 0.5;       // of the slowdown
constexpr double long_together = 0.9;    // correlation of forwards and backwards
constexpr double unequal = 0.03;         // spread of microbatches

std::vector<double> computes_by_worker(const JobSteps& steps) {
  std::vector<double> sums(static_cast<std::size_t>(steps.plan.layout.workers()));
  for (NodeNumber node = 0; node < steps.graph.nodes.size(); ++node)
    if (const JobNode& own = steps.graph.nodes[node]; is_compute(own.operation))
      for (const double time : steps.recorded.of(node))
        sums[static_cast<std::size_t>(own.worker)] +=
            time / static_cast<double>(steps.recorded.steps());
  return sums;
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
  const StragglerMetrics& metrics = report.metrics;
  if (metrics.slowdown.all < least_slowdown)
    return "no significant straggler: with ideal durations steps would hardly be shorter";
  std::vector<std::string> said;
  const int slowest = report.workers.front();
  const double slower = report.own_slowness[static_cast<std::size_t>(slowest)];
  if (slower >= clearly_slow)
    said.push_back(fmt::format("{} computes {:.2f} times as long as the same stage of the others",
                               worker_name(report.steps.plan.layout, slowest), slower));
  else if (metrics.workers_explain.share >= most_of_it)
    said.push_back(fmt::format("few workers are slow, {} most",
                               worker_name(report.steps.plan.layout, slowest)));
  if (metrics.last_stage_explains.share >= most_of_it)
    said.emplace_back("the last stage is slow: move layers away from it");
  if (said.empty() && report.lengths.correlation >= long_together &&
      report.lengths.spread >= unequal)
    said.emplace_back("microbatches differ in length");
  if (said.empty())
    said.emplace_back("neither few workers nor the last stage alone");
  return fmt::format("{}", fmt::join(said, "; "));
}

}  // namespace pipewright::trace
