#pragma once

// How what a training does takes longer and shorter from step to step, as it was recorded. Nothing
// is fitted: a draw takes whole recorded steps, so that what is long together in one, and what
// follows on each other, stays so (a block bootstrap: Künsch, Ann. Stat. 17, 1989).

#include <map>
#include <tuple>
#include <vector>

#include "pipewright/models/measured/recorded_steps.hpp"
#include "pipewright/sim/jitter/together.hpp"

namespace pipewright::sim {

/// Who does something in a job: a rank among the `ranks` of its pipeline, and which of its stages.
struct WorkerPlace {
  int replica = 0;
  int rank = 0;
  int ranks = 1;
  int chunk = 0;
};

class Jitter {
 public:
  /// Throws InputError for fewer than two steps, and where nothing is computed in them.
  explicit Jitter(const models::RecordedSteps& record);

  int steps() const { return steps_; }
  int replicas() const { return replicas_; }
  int ranks() const { return ranks_; }
  const Together& together() const { return together_; }

  /// What an instruction takes in each recorded step, over the mean of its kind on that stage in
  /// all steps, pipelines and microbatches: `steps()` numbers from any of the first `steps()`
  /// places on, as the list goes on from its beginning. Where the job has more microbatches than
  /// the record, they go on in the steps that follow; where it has ranks or pipelines that are not
  /// in the record, those of about the same place stand for them. A half of a backward varies as a
  /// whole one where the record has no halves, and a recomputation as a forward. Null: nothing of
  /// the kind is known.
  const double* factors(const WorkerPlace& place, const plan::Instruction& instruction) const;

 private:
  /// Replica, rank, chunk, kind.
  using Key = std::tuple<int, int, int, plan::InstructionKind>;
  /// By microbatch: the factors by step, twice.
  using Series = std::vector<std::vector<double>>;

  void count_workers(const models::RecordedSteps& record);
  /// `numbers`: of the recorded pipelines, from 0 on.
  void add_factors(const models::RecordedSteps& record, const std::map<int, int>& numbers);
  int recorded_rank(const WorkerPlace& place) const;
  int recorded_replica(int replica, int rank) const;

  int steps_ = 0;
  int replicas_ = 1;
  int ranks_ = 1;
  std::map<int, std::vector<int>> stages_of_;    // by rank, rising
  std::map<int, std::vector<int>> replicas_of_;  // those in which a rank was recorded, rising
  std::map<Key, Series> series_;
  Together together_;
};

}  // namespace pipewright::sim
