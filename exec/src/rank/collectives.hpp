#pragma once

// A rank's collectives: reductions of gradients, their norm, gathers of parameters, exchange of
// losses. They do not block compute, because other ranks may need the rank's next actions. A
// background thread runs them one after the other, in the order of the rank's list.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "background_thread.hpp"
#include "inbox.hpp"
#include "pipewright/exec/rank/reductions.hpp"
#include "pipewright/exec/stage/gradient_norm.hpp"

namespace pipewright::exec {

/// Copies the losses that this rank's last stage has read into `losses`, which has one entry per
/// microbatch of the whole batch.
void note_known_losses(const plan::Program& program, const JobRank& job_rank, const Stages& stages,
                       std::vector<MicrobatchLoss>& losses);

class Collectives {
 public:
  /// Keeps references to its arguments.
  Collectives(const JobRank& job_rank, at::Device device, const plan::Program& trained,
              const TrainingSetup& setup, Stages& stages, Transport& transport,
              MemoryAccount& account, Stopwatch& stopwatch);

  void begin(const plan::Program& program, const Pass& pass);
  const Stream& stream() const { return stream_; }

  /// Returns the ranks that hold the stage, in all pipelines.
  Members copies_of(int stage) const;
  /// Returns those of them that hold the same experts.
  Members copies_of_experts(int stage) const;

  /// Queues a collective after all work on the current stream.
  void submit(const plan::Instruction& i);
  /// Waits before an action until the parameters of its stage are gathered. If the action makes the
  /// gradients of a microbatch, also waits until those of earlier microbatches are
  /// reduce-scattered. The current stream waits for both.
  void wait_before(const plan::Instruction& action);
  /// Blocks until all submitted collectives have ended, and makes the current stream wait for them.
  /// Throws what one of them threw, as a RankFailure that names it.
  void drain();

  /// Makes a stage's gradients ready for its optimizer, once per step of a stage.
  void finish_gradients(Stage& stage);
  /// Returns how the optimizer uses gradients; unchanged if the Program takes no norm.
  const GradientUse& use() const { return use_; }
  /// Returns the norm of the scaled gradients; undefined if it was not computed.
  const at::Tensor& scaled_norm() const { return scaled_norm_; }
  /// Returns the losses by microbatch of the whole batch, if the Program shares them; otherwise
  /// empty.
  const std::vector<MicrobatchLoss>& losses() const { return losses_; }

 private:
  /// A collective that was submitted, and the event that the device has done it.
  struct Submitted {
    std::int64_t number = 0;
    std::shared_ptr<Event> done;
  };

  /// Runs a collective. `gradients` are those of the microbatch for ScatterMicrobatch, otherwise
  /// empty.
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
  std::vector<int> tied_ranks_;  // ranks of a pipeline that sum tied weights

  const plan::Program* program_ = nullptr;  // the running one
  Pass pass_;
  // State of the pass, which the background thread writes until it is drained.
  std::set<int> ties_summed_, finished_;  // stages
  at::Tensor scaled_norm_;
  GradientUse use_;
  std::vector<MicrobatchLoss> losses_;
  Event done_;
  std::optional<Submitted> scatter_;   // the newest
  std::map<int, Submitted> unshards_;  // the newest of each stage
  BackgroundThread beside_;            // last, so that it ends before all that it uses
};

}  // namespace pipewright::exec
