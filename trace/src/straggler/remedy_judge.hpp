#pragma once

// Computes the savings of each remedy, on the steps from which it was learned and on the others.

#include <string>

#include "pipewright/trace/straggler/job_remedies.hpp"
#include "straggler/job_source.hpp"

namespace pipewright::trace {

class RemedyJudge {
 public:
  RemedyJudge(const JobSteps& steps, const StragglerMetrics& metrics);

  const JobSteps& steps() const { return steps_; }
  const JobLayout& layout() const { return steps_.plan.layout; }
  const JobSource& source() const { return source_; }
  double ideal_s(JobOperation operation) const { return metrics_.ideal_s[index_of(operation)]; }

  /// Returns the factor by which the worker itself is slower (`own_slowness`).
  double slower(int worker) const { return slower_[static_cast<std::size_t>(worker)]; }
  /// Returns the mean time of a microbatch on a stage of the replicas over the learned steps, as if
  /// no worker were slow itself.
  double usual_s(int stage, Direction direction) const;
  int slowest_workers() const { return metrics_.slowest_workers; }

  /// Adds `remedy`, which has kind, change and assumptions set, after replaying its steps.
  void add(Remedy remedy, const JobGraph& graph, const JobTimes& times);
  /// Adds a remedy that changes times but not the order of work.
  void add(Remedy remedy, const JobTimes& times) { add(std::move(remedy), steps_.graph, times); }

  /// Returns the mean over the learned steps.
  static double learnt_mean(const std::vector<double>& by_step);

  Remedies all();

 private:
  SavedTime saving(const std::vector<double>& with, std::size_t first, std::size_t stride) const;

  const JobSteps& steps_;
  const StragglerMetrics& metrics_;
  JobSource source_;
  std::vector<double> slower_;  // by worker
  Remedies found_;
};

/// Try all remedies of one kind: for slow workers, slow stages, unequal microbatches, and the
/// schedule.
void try_workers(RemedyJudge& judge);
void try_layers(RemedyJudge& judge);
void try_microbatches(RemedyJudge& judge);
void try_schedules(RemedyJudge& judge);

/// Returns the fraction of a stage's compute that no change of the partition moves: what the first
/// stage has beyond the middle ones (the embedding), and the last one (head and loss).
double fixed_part(const RemedyJudge& judge, int stage, Direction direction);

}  // namespace pipewright::trace
