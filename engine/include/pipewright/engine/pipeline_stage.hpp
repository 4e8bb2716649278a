#pragma once

// One stage by itself, for a training loop of one's own: each call does one thing to one
// microbatch, and the loop decides in which order. With the same microbatches the bits are those of
// serial training, whatever the order.

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
  int microbatches = 1;  // of a step
  // What TrainingSetup says of each.
  exec::OptimizerOptions optimizer{};
  at::ScalarType precision = at::kFloat;
  exec::LossScaling loss_scaling{};
  double clip_norm = 0;
  bool exact = true;
  int gradient_groups = 0;

  exec::RankDevice device{};
  bool dynamic_shapes = false;  // tensors between stages may differ from microbatch to microbatch
  /// How the ranks of the other stages are reached. Empty: the loop moves tensors itself.
  std::shared_ptr<exec::Transport> transport{};
  /// By stage, the rank of the job that has it. Empty: each stage is on the rank of its number.
  std::vector<int> ranks{};

  /// A microbatch of the model's inputs, or tensors like it without numbers: the shapes of all that
  /// goes into this stage and out of it then follow before anything runs (without_memory.hpp).
  exec::Tensors example{};
  /// Or else what goes into this stage and out of it. With neither the first microbatch of a step
  /// says it.
  exec::Tensors inputs{}, outputs{};
};

/// One thread at a time calls a stage, and computes with one thread from `begin` on. A call that
/// comes too early, or twice, throws InputError that says what comes first. What throws ends no
/// other rank: for that call Transport::abort.
class PipelineStage {
 public:
  /// Builds the stage's layers. The module is one pipeline of whole layers: throws InputError where
  /// its axes data or tensor are longer than 1, and where shapes do not follow from the example.
  PipelineStage(const PipelineModule& module, int index, PipelineStageOptions options = {});
  PipelineStage(PipelineStage&&) noexcept;
  ~PipelineStage();

  int index() const;
  /// Stages of the model.
  int count() const;
  bool is_first() const { return index() == 0; }
  bool is_last() const { return index() == count() - 1; }

  /// Before the first microbatch of a step. Of several stages on a rank that share a transport, in
  /// their order and before a microbatch of any.
  void begin(int step);

  /// The first stage takes the inputs, the last one the targets, and each the keyword arguments
  /// that its layers name; other stages need no load. `weight`: of the microbatch's loss in that of
  /// the step, as Dataset::weight has it.
  void load(int microbatch, const exec::Batch& batch, double weight = 1);
  /// Waits for what the stage before sends; nothing on the first stage.
  void receive_inputs(int microbatch);
  void forward(int microbatch);
  /// Sends what the forward gave to the stage after, and returns at once; nothing on the last one.
  void send_outputs(int microbatch);
  /// Waits for what the stage after sends; nothing on the last stage.
  void receive_gradients(int microbatch);
  /// The whole backward; or its two halves, the second at any time behind the first. Gradients of
  /// parameters are added up in an order that does not depend on this one.
  void backward(int microbatch);
  void input_gradient(int microbatch);
  void weight_gradient(int microbatch);
  /// Of inputs, after `backward` or `input_gradient`; nothing on the first stage.
  void send_gradients(int microbatch);

  // For a loop that moves tensors itself, and between two stages of a rank: in place of the
  // receives and sends.
  void set_inputs(int microbatch, exec::Tensors inputs);
  exec::Tensors take_outputs(int microbatch);
  void set_output_gradients(int microbatch, exec::Tensors gradients);
  /// Undefined where an input has none.
  exec::Tensors take_input_gradients(int microbatch);

  /// Once all microbatches have had their backwards: scales and clips gradients, and steps the
  /// optimizer. With a transport all ranks call it, and all learn the loss; without one, only the
  /// last stage knows it. Throws InputError where a microbatch is missing, where the rank has
  /// further stages (`update_together`), or where gradients are needed of stages that are
  /// out of reach.
  exec::StepResult update();

  /// What goes in and out, without numbers; empty where it is not known beforehand.
  const exec::Tensors& input_shapes() const;
  const exec::Tensors& output_shapes() const;
  /// In the order of layers.
  std::vector<at::Tensor> parameters() const;
  /// What is trained, for a SerialTrainer to do the same.
  const exec::TrainingSetup& setup() const;

 private:
  friend struct StepEnd;
  struct State;
  std::unique_ptr<State> state_;
};

/// `PipelineStage::update` for all stages of a rank, in their order.
exec::StepResult update_together(const std::vector<PipelineStage*>& stages);

}  // namespace pipewright::engine
