#include "pipewright/trace/straggler/job_remedies.hpp"

#include <algorithm>

#include "pipewright/plan/schedules/schedule_counts.hpp"
#include "straggler/remedy_judge.hpp"

namespace pipewright::trace {
namespace {

double mean_from(const std::vector<double>& values, std::size_t first, std::size_t stride) {
  std::vector<double> chosen;
  for (std::size_t at = first; at < values.size(); at += stride)
    chosen.push_back(values[at]);
  return mean_of(chosen);
}

int fullest_worker(const plan::Schedule& schedule) {
  const auto peaks = plan::peak_activations(schedule);
  return peaks.empty() ? 0 : *std::max_element(peaks.begin(), peaks.end());
}

}  // namespace

RemedyJudge::RemedyJudge(const JobSteps& steps, const StragglerMetrics& metrics)
    : steps_(steps), metrics_(metrics), source_(steps), slower_(own_slowness(steps)) {
  found_.step_s = mean_of(metrics.replayed_s);
  found_.activations = fullest_worker(steps.plan.schedule);
  found_.has_kept = steps.numbers.size() > 1;
}

double RemedyJudge::usual_s(int stage, Direction direction) const {
  double sum = 0;
  for (int replica = 0; replica < layout().replicas; ++replica) {
    const int worker = layout().worker(replica, stage);
    sum += source_.mean_compute(worker, direction) / slower(worker);
  }
  return sum / layout().replicas;
}

void RemedyJudge::add(Remedy remedy, const JobGraph& graph, const JobTimes& times) {
  const std::vector<double> with = replayed_steps(graph, times);
  remedy.step_s = mean_of(with);
  remedy.saves = saving(with, 0, 1);
  remedy.on_learnt = saving(with, 0, 2);
  remedy.on_kept = saving(with, 1, 2);
  if (remedy.activations == 0)
    remedy.activations = found_.activations;
  found_.all.push_back(std::move(remedy));
}

SavedTime RemedyJudge::saving(const std::vector<double>& with, std::size_t first,
                              std::size_t stride) const {
  const double now = mean_from(metrics_.replayed_s, first, stride);
  const double seconds = now - mean_from(with, first, stride);
  return {seconds, now > 0 ? seconds / now : 0};
}

double RemedyJudge::learnt_mean(const std::vector<double>& by_step) {
  return mean_from(by_step, 0, 2);
}

Remedies RemedyJudge::all() {
  std::stable_sort(found_.all.begin(), found_.all.end(), [](const Remedy& a, const Remedy& b) {
    return a.on_learnt.seconds > b.on_learnt.seconds;
  });
  return std::move(found_);
}

Remedies job_remedies(const JobSteps& steps, const StragglerMetrics& metrics) {
  RemedyJudge judge(steps, metrics);
  try_workers(judge);
  try_layers(judge);
  try_microbatches(judge);
  try_schedules(judge);
  return judge.all();
}

}  // namespace pipewright::trace
