#pragma once

// Recorded step-time variability of a training. Nothing is fitted: a sample takes whole recorded
// steps, so that operations that were slow together in a step, and in consecutive steps, stay so (a
// block bootstrap: Künsch, Ann. Stat. 17, 1989).

#include <map>
#include <tuple>
#include <vector>

#include "pipewright/models/measured/recorded_steps.hpp"
#include "pipewright/sim/jitter/together.hpp"

namespace pipewright::sim {

/// A worker's place in a job: a rank among the `ranks` of its pipeline, and one of its stages.
struct WorkerPlace {
  int replica = 0;
  int rank = 0;
  int ranks = 1;
  int chunk = 0;
};

class Jitter {
 public:
  /// Throws InputError for fewer than two steps, or if nothing is computed in them.
  explicit Jitter(const models::RecordedSteps& record);

  int steps() const { return steps_; }
  int replicas() const { return replicas_; }
  int ranks() const { return ranks_; }
  const JitterCorrelation& together() const { return together_; }

  /// Returns the duration of an instruction in each recorded step, divided by the mean of its kind
  /// on that stage over all steps, pipelines and microbatches. There are `steps()` numbers starting
  /// at any of the first `steps()` places, because the list continues from its beginning.
  /// Microbatches beyond those of the record take the steps that follow. Ranks or pipelines that
  /// are not in the record take the factors of those at about the same place. Half a backward
  /// varies like a whole one if the record has no halves, and a recomputation like a forward. Null:
  /// nothing of the kind is known.
  const double* factors(const WorkerPlace& place, const plan::Instruction& instruction) const;

 private:
  /// (replica, rank, chunk, kind).
  using Key = std::tuple<int, int, int, plan::InstructionKind>;
  /// By microbatch: the factors by step, stored twice.
  using Series = std::vector<std::vector<double>>;

  void count_workers(const models::RecordedSteps& record);
  /// Adds the factors. `numbers` maps recorded pipelines to consecutive numbers from 0.
  void add_factors(const models::RecordedSteps& record, const std::map<int, int>& numbers);
  int recorded_rank(const WorkerPlace& place) const;
  int recorded_replica(int replica, int rank) const;

  int steps_ = 0;
  int replicas_ = 1;
  int ranks_ = 1;
  std::map<int, std::vector<int>> stages_of_;    // by rank, ascending
  std::map<int, std::vector<int>> replicas_of_;  // those in which a rank was recorded, ascending
  std::map<Key, Series> series_;
  JitterCorrelation together_;
};

}  // namespace pipewright::sim
