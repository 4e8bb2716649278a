#pragma once

// Says of each remedy what it saves, on the steps it was learnt from and on the others.

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

  /// So much slower it is for reasons of its own.
  double slower(int worker) const { return slower_[static_cast<std::size_t>(worker)]; }
  /// What a microbatch takes on a stage of the replicas, in the mean of the learnt steps, were no
  /// worker slow for reasons of its own.
  double usual_s(int stage, Direction direction) const;
  int slowest_workers() const { return metrics_.slowest_workers; }

  /// `remedy` has kind, change and what is supposed; its steps are replayed.
  void add(Remedy remedy, const JobGraph& graph, const JobTimes& times);
  /// The same order of work in other times.
  void add(Remedy remedy, const JobTimes& times) { add(std::move(remedy), steps_.graph, times); }

  /// The mean of the steps that are learnt from.
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

/// Each adds what it can try; slow workers, slow stages, unequal microbatches, the order.
void try_workers(RemedyJudge& judge);
void try_layers(RemedyJudge& judge);
void try_microbatches(RemedyJudge& judge);
void try_schedules(RemedyJudge& judge);

/// What of a stage's compute no border moves: what the first stage has beyond the middle ones (the
/// embedding) and the last (head and loss), as a part of its own time.
double fixed_part(const RemedyJudge& judge, int stage, Direction direction);

}  // namespace pipewright::trace
