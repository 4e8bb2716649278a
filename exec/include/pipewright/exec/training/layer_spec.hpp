#pragma once

// The model front: a model is a list of LayerSpecs, each of which builds one layer on the rank that
// needs it. What a layer is stands in layer.hpp, which costs more to read.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
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
  /// Of the microbatch, those of the names that the layer declares (LayerSpec::keywords).
  const NamedTensors* keywords = nullptr;

  /// A keyword argument of the microbatch. Throws InputError where there is none of this name.
  const at::Tensor& keyword(const std::string& name) const;
  /// The same; undefined where there is none.
  at::Tensor find_keyword(const std::string& name) const;
};

class Layer;  // in layer.hpp

struct LayerSpec {
  std::string name;
  std::function<std::shared_ptr<Layer>()> build;
  /// Layers with the same key share the parameters `tied_weights`, the first of each layer with the
  /// first of all others: each holds a copy, the copies start equal, and their gradients are added
  /// up before each step. Empty: not tied.
  std::string tied_key{};
  std::vector<std::string> tied_weights{};
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
  /// Which keyword arguments of a batch the layer takes from its CallContext, on whatever stage it
  /// is: they come with the data and not from the stage before, and have no gradient. With any, the
  /// layer cannot be captured and replayed.
  std::vector<std::string> keywords{};
  /// The class of what it is made of, such as "torch::nn::LinearImpl". Empty: nobody says.
  std::string type{};
  /// Seeds LibTorch's generator before the layer is built. Empty: by seed and place in the list.
  std::function<void(int base_seed, int layer)> seed{};
};

/// Whether the layer's work on one microbatch can be replayed for another.
inline bool can_be_replayed(const LayerSpec& layer) {
  return !layer.random && !layer.varies && layer.keywords.empty();
}

/// Which of the layer's tied weights has this name; nothing for another parameter.
std::optional<std::size_t> tied_place(const LayerSpec& layer, const std::string& parameter);

/// The first layer that has this one's tied key: itself where it is not tied.
int tied_owner(const std::vector<LayerSpec>& specs, int layer);

/// What a layer's parameter is called everywhere: layer and name, of a tied one those of the first
/// layer with its key.
std::pair<std::string, std::string> owner_name(const std::vector<LayerSpec>& specs, int layer,
                                               const std::string& parameter);

/// By tied key, the stages that have a layer with it. `boundaries`: as of plan::Partition.
std::map<std::string, std::set<int>> stages_of_keys(const std::vector<LayerSpec>& specs,
                                                    const std::vector<int>& boundaries);

/// Mean loss of one microbatch from the last layer's outputs and the targets.
using Loss = std::function<at::Tensor(const Tensors& outputs, const Tensors& targets)>;

/// Cross entropy over the last dimension of the first output, averaged over all others but those
/// whose target is `ignored_target`.
at::Tensor cross_entropy(const Tensors& outputs, const Tensors& targets);

}  // namespace pipewright::exec
