#include "print/straggler_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipewright/trace/straggler/shown_remedies.hpp"

namespace pipewright::cli {
namespace {

constexpr std::size_t most_workers = 8;
constexpr std::size_t most_left_out = 3;  // steps
using trace::min_shown_fraction;

std::string in_ms(double seconds) { return fmt::format("{:.1f}", seconds * 1e3); }
std::string in_percent(double part) { return fmt::format("{:.2f} %", 100 * part); }

std::string job_words(const trace::StragglerReport& report) {
  const trace::JobLayout& layout = report.steps.plan.layout;
  std::string text =
      fmt::format("job         {} replicas of {} stages, {} microbatches: {}\n", layout.replicas,
                  layout.stages, report.steps.plan.schedule.microbatches, report.schedule);
  const auto& left_out = report.steps.left_out;
  text += fmt::format("steps       {}, {} to {}{}; {} events\n", report.steps.numbers.size(),
                      report.steps.numbers.front(), report.steps.numbers.back(),
                      left_out.empty() ? "" : fmt::format(", {} more incomplete", left_out.size()),
                      report.events);
  for (std::size_t at = 0; at < std::min(most_left_out, left_out.size()); ++at)
    text += fmt::format("left out    step {}: {}\n", left_out[at].number, left_out[at].why);
  if (report.negative_events > 0)
    text += fmt::format(
        "durations   {} of {} are negative, down to {:.1f} us, as corrected clocks "
        "cause: used as recorded\n",
        report.negative_events, report.events, report.least_event_s * 1e6);
  text += fmt::format("step        {} ms measured, {} replayed, {} with ideal lengths\n",
                      in_ms(trace::mean_of(report.steps.measured)),
                      in_ms(trace::mean_of(report.metrics.replayed_s)),
                      in_ms(trace::mean_of(report.metrics.ideal_step_s)));
  text += fmt::format(
      "slowdown    S {:.4f}; M_W {:.4f} ({} slowest worker{}), M_S {:.4f} (last "
      "stage)\n",
      report.metrics.slowdown.all, report.metrics.workers_explain.share,
      report.metrics.slowest_workers, report.metrics.slowest_workers == 1 ? "" : "s",
      report.metrics.last_stage_explains.share);
  return text + fmt::format("reading     {}\n", trace::reading_of(report));
}

std::string operation_table(const trace::StragglerReport& report) {
  std::vector<std::pair<double, std::string>> rows;
  for (const auto& [operation, slowdown] : report.metrics.by_operation)
    if (std::abs(slowdown.all - 1) >= min_shown_fraction)
      rows.emplace_back(slowdown.all, operation);
  std::sort(rows.rbegin(), rows.rend());
  std::string text = fmt::format("\n{:<28}{:>10}\n", "as recorded, others ideal", "S_t");
  for (const auto& [slowdown, operation] : rows)
    text += fmt::format("{:<28}{:>10.4f}\n", operation, slowdown);
  return text;
}

std::string worker_table(const trace::StragglerReport& report) {
  const trace::JobLayout& layout = report.steps.plan.layout;
  std::string text = fmt::format("\n{:<28}{:>10}{:>14}{:>14}\n", "worker, the slowest first", "S_w",
                                 "compute, ms", "over peers");
  const auto& workers = report.workers;
  for (std::size_t at = 0; at < std::min(most_workers, workers.size()); ++at) {
    const auto worker = static_cast<std::size_t>(workers[at]);
    text += fmt::format("{:<28}{:>10.4f}{:>14}{:>14.4f}\n", trace::worker_name(layout, workers[at]),
                        report.metrics.by_worker[worker], in_ms(report.compute_s[worker]),
                        report.over_peers[worker]);
  }
  if (workers.size() > most_workers)
    text += fmt::format("and {} more\n", workers.size() - most_workers);
  return text;
}

std::string delay_table(const trace::StragglerReport& report) {
  const trace::LaunchDelays& delays = report.delays;
  const double replayed = trace::mean_of(report.metrics.replayed_s);
  std::string text = fmt::format("\n{:<28}{:>10}{:>14}\n", "begins late", "ms/step", "of the step");
  for (const trace::DelayKind& kind : delays.kinds)
    if (std::abs(kind.explains_s) >= min_shown_fraction / 10 * replayed)
      text += fmt::format("{:<28}{:>10}{:>14}\n", kind.before, in_ms(kind.explains_s),
                          in_percent(kind.explains_s / replayed));
  text += fmt::format(
      "unexplained: {} of the step by lengths alone, {:.5f} % with each step's own "
      "delays",
      in_percent(delays.plain_error), 100 * delays.explained_error);
  if (delays.kept_error >= 0)
    text += fmt::format(", {} of every second step with the mean delays of the others",
                        in_percent(delays.kept_error));
  return text + "\n";
}

std::string remedy_table(const trace::StragglerReport& report) {
  const trace::Remedies& remedies = report.remedies;
  std::string text =
      fmt::format("\n{:>10}{:>9}{:>10}{:>10}  simulated\n", "step, ms", "saves", "learnt", "kept");
  text += fmt::format("{:>10}{:>9}{:>10}{:>10}  as it is\n", in_ms(remedies.step_s), "", "", "");
  std::vector<std::string> supposed;
  for (const trace::Remedy* const own : trace::shown_remedies(remedies)) {
    text += fmt::format("{:>10}{:>9}{:>10}{:>10}  {}\n", in_ms(own->step_s),
                        in_percent(own->saves.part), in_percent(own->on_learnt.part),
                        remedies.has_kept ? in_percent(own->on_kept.part) : "", own->change);
    if (std::find(supposed.begin(), supposed.end(), own->supposed) == supposed.end())
      supposed.push_back(own->supposed);
  }
  if (supposed.empty())
    return text + "none of the simulated changes saves time\n";
  text += "\nassumptions:\n";
  for (const std::string& own : supposed)
    text += "- " + own + "\n";
  return text;
}

}  // namespace

std::string straggler_table(const trace::StragglerReport& report) {
  return job_words(report) + operation_table(report) + worker_table(report) + delay_table(report) +
         remedy_table(report);
}

}  // namespace pipewright::cli
