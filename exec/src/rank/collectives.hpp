#pragma once

// A rank's collectives: sums of gradients, their norm, parameters that are gathered, losses that
// are shared. They do not hold up compute: a rank that reaches one goes on, as others may need what
// it does next, and they run beside, one after the other in the order of its list.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "inbox.hpp"
#include "pipewright/exec/rank/reductions.hpp"
#include "pipewright/exec/stage/gradient_norm.hpp"
#include "thread_beside.hpp"

namespace pipewright::exec {

/// Puts the losses of a pass, by microbatch of the whole batch, that this rank's last stage has
/// read into `losses`.
void note_known_losses(const plan::Program& program, const JobRank& job_rank, const Stages& stages,
                       std::vector<MicrobatchLoss>& losses);

class Collectives {
 public:
  /// References are kept.
  Collectives(const JobRank& job_rank, at::Device device, const plan::Program& trained,
              const TrainingSetup& setup, Stages& stages, Transport& transport,
              MemoryAccount& account, Stopwatch& stopwatch);

  void begin(const plan::Program& program, const Pass& pass);
  const Stream& stream() const { return stream_; }

  /// Who holds the stage, over all pipelines.
  Members copies_of(int stage) const;
  /// Of those the ones with the same experts.
  Members copies_of_experts(int stage) const;

  /// Behind all that the current stream has been given.
  void submit(const plan::Instruction& i);
  /// Before an action: returns when the parameters of its stage are whole, and, where it makes the
  /// whole gradients of a microbatch, those before them are shards. The current stream comes after
  /// that.
  void wait_before(const plan::Instruction& action);
  /// Returns when all that were submitted are over; the current stream comes after them. Throws
  /// what one of them threw, RankFailure with its name.
  void drain();

  /// Makes the gradients of a stage what its optimizer steps with, once per step of a stage.
  void finish_gradients(Stage& stage);
  /// Where the Program takes no norm: as they are.
  const GradientUse& use() const { return use_; }
  /// The norm of the gradients as they are; undefined where nobody asked.
  const at::Tensor& scaled_norm() const { return scaled_norm_; }
  /// By microbatch of the whole batch, where the Program shares them; else empty.
  const std::vector<MicrobatchLoss>& losses() const { return losses_; }

 private:
  /// One that runs beside, and when the device has done it.
  struct Submitted {
    std::int64_t number = 0;
    std::shared_ptr<Event> done;
  };

  /// `gradients`: of the microbatch whose sum this is.
  void perform(const plan::Instruction& i, Tensors gradients);
  void wait_for(const Submitted& beside);
  void sum_tied();
  void sum_copies(int stage, SumOf wanted);
  void gather(int stage);
  void sum_ties_within(Stage& stage);
  void take_norm();
  void share_loss();
  Members everybody() const;
  Members of_same_shard() const;

  const JobRank& job_rank_;
  const plan::Program& trained_;
  const TrainingSetup& setup_;
  Stages& stages_;
  Transport& transport_;
  MemoryAccount& account_;
  Stopwatch& stopwatch_;
  Stream stream_;
  std::vector<int> tied_ranks_;  // of a pipeline, that sum tied weights

  const plan::Program* program_ = nullptr;  // that runs
  Pass pass_;
  // What belongs to the pass; written by the thread beside until it is drained.
  std::set<int> ties_summed_, finished_;  // stages
  at::Tensor scaled_norm_;
  GradientUse use_;
  std::vector<MicrobatchLoss> losses_;
  Event done_;
  std::optional<Submitted> scatter_;   // the newest
  std::map<int, Submitted> unshards_;  // likewise, by stage
  ThreadBeside beside_;                // last: it ends before all that it uses
};

}  // namespace pipewright::exec
