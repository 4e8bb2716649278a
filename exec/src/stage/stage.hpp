#pragma once

// One stage on its rank: its layers, their optimizer, and the buffers of the microbatches under
// way. A stage is one autograd graph, or, where layers run again, several segments with a graph
// each.

#include <memory>
#include <optional>
#include <vector>

#include "captured_slot.hpp"
#include "gradient_sums.hpp"
#include "pipewright/exec/stage/split_backward.hpp"
#include "pipewright/exec/training/training_setup.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::exec {

/// One graph of a microbatch: consecutive layers from leaves to outputs.
struct Segment {
  Tensors inputs;   // leaves; their gradients are for the segment or the stage before
  Tensors outputs;  // roots of the graph; on the last stage the microbatch's loss
  SplitBackward split;
};

/// What a stage holds for one microbatch, from its first instruction to its last.
struct StageBuffers {
  Tensors inputs;
  Tensors targets;  // last stage
  std::vector<Segment> segments;
  Tensors outputs;           // until they are handed on; on the last stage the loss
  Parts parts;               // that follow the forward
  Tensors weights;           // of its forward, where they may change before its backward
  Tensors output_gradients;  // from the stage after; on the last stage of the loss
  Tensors input_gradients;
};

/// What must not change from microbatch to microbatch: type and sizes.
using PayloadShape = std::pair<at::ScalarType, std::vector<std::int64_t>>;

/// What runs: which step of which data, and whether gradients are wanted.
struct Pass {
  const Dataset* data = nullptr;
  int step = 0;
  int first_microbatch = 0;  // of this replica, in the whole batch
  int microbatches = 1;      // of the whole batch
  bool training = true;
  double loss_scale = 1;
  bool keep_outputs = false;
};

class Stage {
 public:
  struct Place {
    int index = 0;
    int first = 0, last = 0;  // layers of the model
    at::Device device = at::kCPU;
    Shard shard{};
    std::map<int, std::vector<int>> microbatches{};  // of the batch, by gradient group
    bool splits_backward = false;                    // the Program has I and W for it
    int step_every = 0;                              // as in the Program
    int recompute_layers = 0;                        // likewise
    bool selective_recompute = false;                // likewise
    bool captures = false;                           // see ExecutorOptions::cuda_graphs
    AccountEntry* account = nullptr;                 // what graphs keep is charged to it
  };
  Stage(Place place, const TrainingSetup& setup);

  /// Before the first instruction of a pass. `slots`: buffers held at once.
  void begin(const Pass& pass, int slots);
  /// After the last one: nothing of the pass is kept but losses and outputs. Waits for the device.
  void end();

  void load(const plan::Instruction& i);
  /// Where a Recompute will come, only the inputs of what runs again at a time are kept.
  void forward(const plan::Instruction& i, Parts parts);
  void recompute(const plan::Instruction& i);
  void backward(const plan::Instruction& i);
  void input_gradient(const plan::Instruction& i);
  void weight_gradient(const plan::Instruction& i);

  StageBuffers& buffers(const plan::Instruction& i) {
    return slots_[static_cast<std::size_t>(i.slot)];
  }
  void receive_inputs(const plan::Instruction& i, Tensors inputs);
  /// What the stage after takes over: the outputs cut off their graph.
  Tensors outputs_for_next(const plan::Instruction& i);
  /// What the stage before takes over.
  Tensors take_input_gradients(const plan::Instruction& i);

  /// Steps with the gradients summed since the last step. In an asynchronous Program the weights
  /// that microbatches under way have used stay what they were.
  void update(double learning_rate, const GradientUse& use);

  const Place& place() const { return place_; }
  const std::vector<std::shared_ptr<Layer>>& layers() const { return layers_; }
  const LayerSpec& spec_of(int layer) const {
    return setup_.layers[static_cast<std::size_t>(layer)];
  }
  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  GradientSums& gradients() { return *gradients_; }
  /// The layer, counted over the model, that a parameter of the optimizer belongs to.
  int layer_of(std::size_t parameter) const { return layer_of_parameter_[parameter]; }
  /// Its name in that layer.
  const std::string& name_of(std::size_t parameter) const { return name_of_parameter_[parameter]; }
  /// The parameter that this layer shares with others, if any.
  std::optional<std::size_t> tied_parameter(int layer) const;
  /// By microbatch of this replica; of the last stage, after its forwards.
  const std::vector<double>& losses() const { return losses_; }
  /// Brings them from the device, for which it waits.
  void read_losses();
  std::vector<Tensors>& kept_outputs() { return kept_outputs_; }

 private:
  bool is_first() const { return place_.first == 0 && place_.index == 0; }
  bool is_last() const { return place_.last == static_cast<int>(setup_.layers.size()); }
  const Computed& replay(const plan::Instruction& i, const std::function<Computed()>& part);
  template <class Work>
  Tensors perform(const plan::Instruction& i, const Work& part);
  template <class Work>
  Tensors with_gradients(const plan::Instruction& i, const Work& part);
  CallContext context_of(const plan::Instruction& i) const;
  bool has_graph(const StageBuffers& held) const { return pass_.training && !held.parts.again; }
  Tensors run_layers(int first, int last, Tensors values, const CallContext& context) const;
  const std::vector<int>& bounds(const plan::Instruction& i) {
    return buffers(i).parts.again && place_.recompute_layers > 0 ? rerun_bounds_ : graph_bounds_;
  }
  Tensors run_segment(std::size_t segment, const Tensors& inputs, const plan::Instruction& i);
  void note_loss(const plan::Instruction& i, const at::Tensor& loss);
  Tensors run_without_graph(const plan::Instruction& i);
  Tensors build_all(const plan::Instruction& i);
  void build_graph(const plan::Instruction& i, std::size_t segment);
  void check_shapes(const char* what, const Tensors& tensors, std::vector<PayloadShape>& known,
                    int microbatch) const;

  Place place_;
  const TrainingSetup& setup_;
  // Of the segments, in layers of the model: of those that run once, and of those that run again.
  std::vector<int> graph_bounds_, rerun_bounds_;
  std::vector<std::shared_ptr<Layer>> layers_;
  std::vector<int> layer_of_parameter_;
  std::vector<std::string> name_of_parameter_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<GradientSums> gradients_;
  Pass pass_;
  std::vector<StageBuffers> slots_;
  bool captures_ = false;     // in this pass
  bool has_trained_ = false;  // in a pass before
  std::vector<std::unique_ptr<CapturedSlot>> captured_;
  at::Tensor loss_gradient_;  // the same for each microbatch of a pass: a mean has equal parts
  std::vector<double> losses_;
  std::vector<std::pair<std::size_t, at::Tensor>> unread_losses_;  // by microbatch, on the device
  std::vector<Tensors> kept_outputs_;
  std::vector<PayloadShape> input_shapes_, output_shapes_;
};

}  // namespace pipewright::exec
