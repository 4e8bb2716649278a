#pragma once

// A stage on its rank, which executes the instructions of a rank that trains or of a profiler. It
// consists of the layers, the passes through them, the microbatches in flight, and the optimizer.

#include <functional>
#include <memory>
#include <vector>

#include "pipewright/exec/data/read_ahead.hpp"
#include "pipewright/exec/stage/losses.hpp"
#include "pipewright/exec/stage/pass.hpp"
#include "pipewright/exec/stage/stage_layers.hpp"
#include "pipewright/exec/stage/stage_optimizer.hpp"
#include "pipewright/exec/stage/stage_spec.hpp"
#include "pipewright/exec/training/training_setup.hpp"

namespace pipewright::exec {

class BoundaryShapes;
class CapturedSlot;
struct Computed;
class LayerPasses;
struct MicrobatchState;

class Stage {
 public:
  /// `setup` must outlive it.
  Stage(StageSpec spec, const TrainingSetup& setup);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// Sets the shapes of inputs and outputs in training. Meta tensors suffice. Without this, the
  /// first microbatch of a pass sets them.
  void expect_shapes(const Tensors& inputs, const Tensors& outputs);
  /// Call before the first instruction of a pass. `slots`: number of microbatches in flight at
  /// once.
  void begin(const Pass& pass, int slots);
  /// Call after the last instruction of a pass. Keeps only the losses and outputs of the pass.
  /// Blocks until the device has finished.
  void end();

  /// Allocate and free the parameters under ZeRO stage 3, as in StageOptimizer.
  void allocate_parameters() { optimizer_.allocate_parameters(); }
  void free_parameters() { optimizer_.free_parameters(); }

  void load(const plan::Instruction& i);
  /// Split `load` in two: `reading` returns what to read, and `load` takes the data that was read.
  Reading reading(const plan::Instruction& i) const;
  void load(const plan::Instruction& i, ReadData data);
  /// Runs an action: a forward, backward, half of a backward or recomputation.
  void compute(const plan::Instruction& i);
  /// Moves out the unsharded gradients of the newest microbatch, in the order of
  /// ScatteredGradients. Call only if gradients are sharded.
  Tensors take_gradients();
  /// Sums the gradients of the microbatches since the last step and shows them to the training's
  /// hook. Call before the `update` that uses them.
  void finish_gradients() { optimizer_.finish_gradients(pass_); }
  void update(const plan::Instruction& i, double learning_rate, const GradientUse& use = {}) {
    optimizer_.step(i, learning_rate, use);
  }

  void receive_inputs(const plan::Instruction& i, Tensors inputs);
  void receive_gradients(const plan::Instruction& i, Tensors output_gradients);
  /// Returns the outputs, detached from their graph, for the next stage.
  Tensors outputs_for_next(const plan::Instruction& i);
  /// Returns the gradients of the inputs, for the previous stage.
  Tensors take_input_gradients(const plan::Instruction& i);
  /// Return the tensors that a microbatch has loaded or received. Valid until its backward.
  const Tensors& inputs(const plan::Instruction& i) const;
  const Tensors& targets(const plan::Instruction& i) const;

  const StageSpec& spec() const { return spec_; }
  const StageLayers& layers() const { return layers_; }
  Optimizer& optimizer() const { return optimizer_.optimizer(); }
  /// The sums of gradients without sharding, and with sharding.
  GradientSums& gradients() const { return optimizer_.gradients(); }
  ScatteredGradients& scattered() const { return optimizer_.scattered(); }
  /// Returns the losses by microbatch of this replica. Call on the last stage, after its forwards.
  const std::vector<MicrobatchLoss>& losses() const { return losses_.by_microbatch(); }
  /// Reads the losses from the device. Blocks until it has computed them.
  void read_losses() { losses_.read(); }
  std::vector<Tensors>& kept_outputs();

 private:
  MicrobatchState& slot(const plan::Instruction& i);
  void take(const plan::Instruction& i, const Reading& what, ReadData data);
  void load_keywords(const plan::Instruction& i);
  void forward(const plan::Instruction& i);
  void note_loss(const plan::Instruction& i, const at::Tensor& loss);
  const Computed& replay(const plan::Instruction& i, const std::function<Computed()>& part);
  using Work = Tensors (LayerPasses::*)(MicrobatchState&);
  Tensors perform(const plan::Instruction& i, Work work);
  Tensors with_gradients(const plan::Instruction& i, Work work);

  StageSpec spec_;
  const TrainingSetup& setup_;
  StageLayers layers_;
  StageOptimizer optimizer_;
  Pass pass_;
  std::unique_ptr<LayerPasses> passes_;
  std::vector<MicrobatchState> slots_;
  bool captures_ = false;     // in this pass
  bool has_trained_ = false;  // in an earlier pass
  std::vector<std::unique_ptr<CapturedSlot>> captured_;
  std::unique_ptr<BoundaryShapes> input_shapes_, output_shapes_;
  Losses losses_;
};

}  // namespace pipewright::exec
