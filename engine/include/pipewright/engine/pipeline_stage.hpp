#pragma once

// A single stage, for a custom training loop: each call performs one operation on one microbatch,
// and the loop decides the order. With the same microbatches, results are bit-identical to serial
// training, in any order.

#include <memory>
#include <vector>

#include "pipewright/engine/pipeline_module.hpp"
#include "pipewright/exec/data/loader.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/exec/training/training_setup.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::engine {

struct PipelineStageOptions {
  int microbatches = 1;  // per step
  // These fields have the same meaning as in TrainingSetup.
  exec::OptimizerOptions optimizer{};
  at::ScalarType precision = at::kFloat;
  exec::LossScaling loss_scaling{};
  double clip_norm = 0;
  bool exact = true;
  int gradient_groups = 0;

  exec::RankDevice device{};
  bool dynamic_shapes = false;  // boundary tensors may differ in shape between microbatches
  /// Connects the ranks of the stages. Empty: the loop moves tensors itself.
  std::shared_ptr<exec::Transport> transport{};
  /// The job rank of each stage. Empty: stage i is on rank i.
  std::vector<int> ranks{};

  /// A microbatch of the model's inputs, or meta tensors like it, from which the shapes of this
  /// stage's inputs and outputs follow before anything runs (without_memory.hpp).
  exec::Tensors example{};
  /// Alternatively, the stage's inputs and outputs themselves. If neither is given, the first
  /// microbatch of a step determines them.
  exec::Tensors inputs{}, outputs{};
};

/// Only one thread at a time may call a stage, and it computes single-threaded from `begin` on. A
/// call that comes too early, or twice, throws an InputError that names the call that must come
/// first. An exception does not end the other ranks; call Transport::abort for that.
class PipelineStage {
 public:
  /// Builds the stage's layers. The module must be one pipeline without tensor parallelism: throws
  /// InputError if its axes data or tensor are longer than 1, or if shapes cannot be derived from
  /// the example.
  PipelineStage(const PipelineModule& module, int index, PipelineStageOptions options = {});
  PipelineStage(PipelineStage&&) noexcept;
  ~PipelineStage();

  int index() const;
  /// Returns the number of stages of the model.
  int count() const;
  bool is_first() const { return index() == 0; }
  bool is_last() const { return index() == count() - 1; }

  /// Begins a step, before its first microbatch. If several stages of a rank share a transport,
  /// call it for them in order, before any microbatch.
  void begin(int step);

  /// Loads a microbatch: the inputs on the first stage, the targets on the last one, and on each
  /// stage the keyword arguments that its layers name. Other stages need no load. `weight`: the
  /// microbatch's weight in the step's loss, as in Dataset::weight.
  void load(int microbatch, const exec::Batch& batch, double weight = 1);
  /// Blocks until the previous stage's outputs arrive. Does nothing on the first stage.
  void receive_inputs(int microbatch);
  void forward(int microbatch);
  /// Sends the forward's outputs to the next stage and returns at once. Does nothing on the last
  /// stage.
  void send_outputs(int microbatch);
  /// Blocks until the next stage's gradients arrive. Does nothing on the last stage.
  void receive_gradients(int microbatch);
  /// Computes the whole backward, or its two halves, of which the second may run at any later time.
  /// Parameter gradients are accumulated in an order that is independent of the order of calls.
  void backward(int microbatch);
  void input_gradient(int microbatch);
  void weight_gradient(int microbatch);
  /// Sends the input gradients, after `backward` or `input_gradient`. Does nothing on the first
  /// stage.
  void send_gradients(int microbatch);

  // For a loop that moves tensors itself, and between two stages of one rank: these calls replace
  // the receives and sends.
  void set_inputs(int microbatch, exec::Tensors inputs);
  exec::Tensors take_outputs(int microbatch);
  void set_output_gradients(int microbatch, exec::Tensors gradients);
  /// A gradient is undefined if its input has none.
  exec::Tensors take_input_gradients(int microbatch);

  /// Scales and clips gradients and steps the optimizer, after the backwards of all microbatches.
  /// With a transport all ranks must call it, and all receive the loss; without one, only the last
  /// stage knows it. Throws InputError if a microbatch is missing, if the rank has further stages
  /// (`update_together`), or if gradients of unreachable stages are needed.
  exec::StepResult update();

  /// Return inputs and outputs as meta tensors; empty if they are not known in advance.
  const exec::Tensors& input_shapes() const;
  const exec::Tensors& output_shapes() const;
  /// Returns the parameters in the order of layers.
  std::vector<at::Tensor> parameters() const;
  /// Returns the training setup, from which a SerialTrainer can repeat the same training.
  const exec::TrainingSetup& setup() const;

 private:
  friend struct StepEnd;
  struct State;
  std::unique_ptr<State> state_;
};

/// Runs `PipelineStage::update` for all stages of a rank, in order.
exec::StepResult update_together(const std::vector<PipelineStage*>& stages);

}  // namespace pipewright::engine
