#pragma once

// One stage on its rank: its layers, their optimizer, and the buffers of the microbatches under
// way. What an instruction does stands here alone: a rank that trains and a profiler both call it.
// A stage is one autograd graph, or several segments with a graph each: where layers run again, or
// where somebody observes them one by one.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/exec/data/read_ahead.hpp"
#include "pipewright/exec/stage/stage_spec.hpp"
#include "pipewright/exec/training/training_setup.hpp"

namespace pipewright::exec {

class CapturedSlot;
struct Computed;
class GradientSums;
class ScatteredGradients;

/// What runs: which step of which data, and whether gradients are wanted.
struct Pass {
  const Dataset* data = nullptr;
  int step = 0;
  int first_microbatch = 0;  // of this replica, in the whole batch
  int microbatches = 1;      // of the whole batch
  bool training = true;
  double loss_scale = 1;
  bool keep_outputs = false;
  bool loss = true;      // without one, targets are not read: for passes that do not train
  bool observed = true;  // whoever observes instructions hears of it
  bool goes_on = false;  // the same Program runs the next step behind it
};

/// Of one microbatch: the loss, as its function gave it, and its weight in that of the batch.
struct MicrobatchLoss {
  double loss = 0;
  double weight = 0;
  bool is_known = false;  // here
};

/// Over the batch, added up in the order of microbatches.
double mean_loss(const std::vector<MicrobatchLoss>& losses);

class Stage {
 public:
  /// `setup` must outlive it.
  Stage(StageSpec spec, const TrainingSetup& setup);
  Stage(Stage&&) noexcept;
  ~Stage();

  /// Where parameters are sharded: gives them memory for all their numbers, whose values are
  /// anything, and takes it back. A stage begins without.
  void make_room();
  void let_go();

  /// Of what comes in and goes out in training, where that is known beforehand: tensors that have
  /// these types and sizes, with numbers or without. Else the first microbatch of a pass says it.
  void expect_shapes(const Tensors& inputs, const Tensors& outputs);
  /// Before the first instruction of a pass. `slots`: buffers held at once.
  void begin(const Pass& pass, int slots);
  /// After the last one: nothing of the pass is kept but losses and outputs. Waits for the device.
  void end();

  void load(const plan::Instruction& i);
  /// The same in two: what it reads, which somebody has read by then.
  Reading reading(const plan::Instruction& i) const;
  void load(const plan::Instruction& i, ReadData data);
  /// Where a Recompute will come, only the inputs of what runs again at a time are kept.
  void forward(const plan::Instruction& i);
  void recompute(const plan::Instruction& i);
  void backward(const plan::Instruction& i);
  void input_gradient(const plan::Instruction& i);
  void weight_gradient(const plan::Instruction& i);
  /// Where gradients are sharded: those of the newest microbatch, whole, as ScatteredGradients has
  /// them. They are the caller's from here on.
  Tensors take_gradients();
  /// Adds up the gradients of the microbatches since the last step, before an `update` with them,
  /// and shows them to the training's hook.
  void finish_gradients();
  /// Steps with them. In an asynchronous Program the weights that microbatches under way have used
  /// stay what they were.
  void update(const plan::Instruction& i, double learning_rate, const GradientUse& use = {});

  void receive_inputs(const plan::Instruction& i, Tensors inputs);
  void receive_gradients(const plan::Instruction& i, Tensors output_gradients);
  /// What the stage after takes over: the outputs cut off their graph.
  Tensors outputs_for_next(const plan::Instruction& i);
  /// What the stage before takes over.
  Tensors take_input_gradients(const plan::Instruction& i);
  /// What the microbatch began with, and what its loss compares with, as long as they are held.
  const Tensors& inputs(const plan::Instruction& i) const;
  const Tensors& targets(const plan::Instruction& i) const;

  /// One layer by itself, of those that the stage has, or behind the last layer of the model the
  /// loss.
  Tensors run_layer(int layer, const Tensors& inputs, const Tensors& targets,
                    const CallContext& context) const;

  const StageSpec& spec() const { return spec_; }
  const std::vector<std::shared_ptr<Layer>>& layers() const { return layers_; }
  const LayerSpec& spec_of(int layer) const {
    return setup_.layers[static_cast<std::size_t>(layer)];
  }
  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  /// Where gradients are not sharded, and where they are.
  GradientSums& gradients() { return *gradients_; }
  ScatteredGradients& scattered() { return *scattered_; }
  /// The layer, counted over the model, that a parameter of the optimizer belongs to.
  int layer_of(std::size_t parameter) const { return layer_of_parameter_[parameter]; }
  /// Its name in that layer.
  const std::string& name_of(std::size_t parameter) const { return name_of_parameter_[parameter]; }
  /// How shards share the parameter out; null: each has all of it.
  const CutParameter* cut_of(std::size_t parameter) const {
    const auto& cut = cut_of_parameter_[parameter];
    return cut ? &*cut : nullptr;
  }
  /// Whether the parameter is one that its layer shares with others, and which of these.
  std::optional<std::size_t> tied_place(std::size_t parameter) const {
    return exec::tied_place(spec_of(layer_of(parameter)), name_of(parameter));
  }
  /// By microbatch of this replica; of the last stage, after its forwards.
  const std::vector<MicrobatchLoss>& losses() const { return losses_; }
  /// Brings them from the device, for which it waits.
  void read_losses();
  std::vector<Tensors>& kept_outputs() { return kept_outputs_; }

 private:
  struct Segment;
  struct Buffers;
  /// What must not change from microbatch to microbatch: type and sizes.
  using PayloadShape = std::pair<at::ScalarType, std::vector<std::int64_t>>;

  bool is_first() const { return spec_.first == 0 && spec_.index == 0; }
  bool is_last() const { return spec_.last == loss_layer(); }
  int loss_layer() const { return static_cast<int>(setup_.layers.size()); }
  /// One behind the last layer, or the loss.
  int layer_end() const { return is_last() ? spec_.last + 1 : spec_.last; }
  void cut_segments();
  void show_gradients() const;
  bool has_gradient_before(const Buffers& held, int layer) const;
  Buffers& buffers(const plan::Instruction& i);
  BackwardKind backward_kind(const plan::Instruction& i) const;
  bool has_graph(const plan::Instruction& i) const {
    return pass_.training && !backward_kind(i).recomputed;
  }
  const std::vector<int>& bounds(const Buffers& held) const;
  int rerun_begin(int layer) const;

  template <class Work>
  void observed(const plan::Instruction& i, plan::InstructionKind part, int layer,
                const Work& work) const;
  const Computed& replay(const plan::Instruction& i, const std::function<Computed()>& part);
  template <class Work>
  Tensors perform(const plan::Instruction& i, const Work& part);
  template <class Work>
  Tensors with_gradients(const plan::Instruction& i, const Work& part);
  CallContext context_of(const plan::Instruction& i, int layer) const;
  Tensors run_segment(std::size_t segment, const Tensors& inputs, const plan::Instruction& i,
                      plan::InstructionKind part);
  void take_inputs(const plan::Instruction& i, Tensors inputs);
  void take_keywords(const plan::Instruction& i);
  void take_targets(const plan::Instruction& i, Tensors targets, double weight);
  void note_loss(const plan::Instruction& i, const at::Tensor& loss);
  Tensors run_without_graph(const plan::Instruction& i);
  Tensors run_with_graph(const plan::Instruction& i);
  void build_graphs(const plan::Instruction& i, std::size_t first, std::size_t last);
  void run_again_up_to(const plan::Instruction& i, std::size_t segment);
  void check_shapes(const char* what, const Tensors& tensors, std::vector<PayloadShape>& known,
                    int microbatch) const;

  StageSpec spec_;
  const TrainingSetup& setup_;
  // Where segments begin and end, in layers of the model: of what runs once, and of what runs
  // again.
  std::vector<int> graph_bounds_, rerun_bounds_;
  std::vector<std::shared_ptr<Layer>> layers_;
  std::vector<Tensors> buffers_of_layer_;
  int first_trained_ = 0;        // layer that has something to train; none: the end
  bool takes_keywords_ = false;  // a layer of it does
  std::vector<int> layer_of_parameter_;
  std::vector<std::string> name_of_parameter_;
  std::vector<std::optional<CutParameter>> cut_of_parameter_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<GradientSums> gradients_;  // or else
  std::unique_ptr<ScatteredGradients> scattered_;
  Pass pass_;
  std::vector<Buffers> slots_;
  bool captures_ = false;     // in this pass
  bool has_trained_ = false;  // in a pass before
  std::vector<std::unique_ptr<CapturedSlot>> captured_;
  at::Tensor loss_gradient_;  // of a microbatch of weight 1
  std::vector<MicrobatchLoss> losses_;
  std::vector<std::pair<std::size_t, at::Tensor>> unread_losses_;  // by microbatch, on the device
  std::vector<Tensors> kept_outputs_;
  std::vector<PayloadShape> known_inputs_, known_outputs_;  // beforehand
  std::vector<PayloadShape> input_shapes_, output_shapes_;  // of the pass; none: not known yet
};

}  // namespace pipewright::exec
