#pragma once

// The model front: a model is a list of LayerSpecs, each of which builds one layer on the rank that
// needs it. What a layer is stands in layer.hpp, which costs more to read.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/exec/training/shard_group.hpp"

namespace pipewright::exec {

/// A number of a call, such as its microbatch. Work that is done once and replayed for other calls
/// (training.cuda_graphs) has none, and a layer that looks at it then is refused.
class CallNumber {
 public:
  CallNumber(int number) : number_(number) {}
  static CallNumber hidden_from(const std::string& layer);

  /// Throws InputError where it is hidden.
  operator int() const { return hidden_from_ == nullptr ? number_ : refuse(); }

 private:
  int refuse() const;

  int number_;
  const std::string* hidden_from_ = nullptr;  // the layer's name
};

/// What a layer may need to know of a call beside its input.
struct CallContext {
  CallNumber step = 0;
  CallNumber microbatch = 0;  // of the whole batch, over all replicas
  bool training = true;
  /// Whether the layer leaves out what is large to keep and quick to compute, and computes it again
  /// in its backward (`run_again_in_backward`).
  bool selective_recompute = false;
};

class Layer;  // in layer.hpp

struct LayerSpec {
  std::string name;
  std::function<std::shared_ptr<Layer>()> build;
  /// Layers with the same key share the parameter `tied_weight`: each holds a copy, the copies
  /// start equal, and their gradients are added up before each step. Empty: not tied.
  std::string tied_key{};
  std::string tied_weight{};
  /// The layer draws from LibTorch's own generator, which the whole process shares. It is then
  /// seeded by seed, layer, step and microbatch, and no other such layer runs at the same time.
  bool random = false;
  /// The same inputs may give something else in another call: the layer looks at its step or
  /// microbatch, has random numbers of its own, or counts its calls; or how much it computes
  /// depends on what comes in. What such a layer does cannot be captured and replayed
  /// (training.cuda_graphs).
  bool varies = false;
  /// Builds the part of the layer that a shard has, where products are added up in several groups.
  /// Empty: the layer is not cut, and each shard has and computes all of it.
  std::function<std::shared_ptr<Layer>(const ShardPlace&)> build_shard{};
  /// Gives a layer that was built, or the part of it that a shard has, numbers from elsewhere, such
  /// as a file; only what it has is read. Those of a tied weight are the same for each layer that
  /// has it. Empty: it begins with the numbers that it was built with.
  std::function<void(Layer&, const ShardPlace&)> fill{};
  /// Ranks along the expert axis can share out the layer: `build_shard` builds their parts, too.
  bool has_experts = false;
  /// Of a last layer whose outputs are those of a shard: the mean loss, the same on all shards.
  /// Empty: outputs are whole, and the training's loss is of them.
  std::function<at::Tensor(const Tensors& outputs, const Tensors& targets, const ShardPlace&)>
      shard_loss{};
  /// Of what kind the layer is, with all that its work depends on beside its input's shape: two
  /// layers of one kind whose inputs have equal shapes cost the same, so one of them is measured
  /// for all, and for other trainings. Empty: it is a kind by itself.
  std::string kind{};
};

/// Whether the layer's work on one microbatch can be replayed for another.
inline bool can_be_replayed(const LayerSpec& layer) { return !layer.random && !layer.varies; }

/// The first layer that has this one's tied key: itself where it is not tied.
int tied_owner(const std::vector<LayerSpec>& specs, int layer);

/// Mean loss of one microbatch from the last layer's outputs and the targets.
using Loss = std::function<at::Tensor(const Tensors& outputs, const Tensors& targets)>;

/// Cross entropy over the last dimension of the first output, averaged over all others but those
/// whose target is `ignored_target`.
at::Tensor cross_entropy(const Tensors& outputs, const Tensors& targets);

}  // namespace pipewright::exec
