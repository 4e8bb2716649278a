#pragma once

// The description of a model: a list of LayerSpecs, each of which builds one layer on the rank that
// needs it. The layer itself is declared in layer.hpp, which takes longer to compile.

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

/// A number of a call, such as its microbatch. Work that is captured once and replayed for other
/// calls (training.cuda_graphs) has none, and a layer that reads it then gets an InputError.
class CallNumber {
 public:
  CallNumber(int number) : number_(number) {}
  static CallNumber hidden_from(const std::string& layer);

  /// Throws InputError if the number is hidden.
  operator int() const { return hidden_from_ == nullptr ? number_ : refuse(); }

 private:
  int refuse() const;

  int number_;
  const std::string* hidden_from_ = nullptr;  // the layer's name
};

/// The data of a call that a layer may need in addition to its input.
struct CallContext {
  CallNumber step = 0;
  CallNumber microbatch = 0;  // of the whole batch, over all replicas
  bool training = true;
  /// True if the layer does not save activations that are large and quick to compute, but
  /// recomputes them in its backward (`recompute_in_backward`).
  bool selective_recompute = false;
  /// The microbatch's keyword arguments that the layer declares (LayerSpec::keywords).
  const NamedTensors* keywords = nullptr;

  /// Returns a keyword argument of the microbatch. Throws InputError if none exists of this name.
  const at::Tensor& keyword(const std::string& name) const;
  /// Returns a keyword argument of the microbatch, or an undefined tensor if none exists.
  at::Tensor find_keyword(const std::string& name) const;
};

class Layer;  // in layer.hpp

struct LayerSpec {
  std::string name;
  std::function<std::shared_ptr<Layer>()> build;
  /// Layers with the same key share the parameters `tied_weights`: the first name of each layer
  /// stands for the same weight, then the second, and so on. Each layer holds a copy. The copies
  /// start equal, and their gradients are summed before each step. Empty: not tied.
  std::string tied_key{};
  std::vector<std::string> tied_weights{};
  /// True if the layer uses LibTorch's generator, which is shared by the whole process. It is then
  /// seeded by seed, layer, step and microbatch, and no other such layer runs at the same time.
  bool random = false;
  /// True if equal inputs may give different results in another call. Such a layer reads its step
  /// or microbatch, has its own random numbers, counts its calls, or does an amount of work that
  /// depends on the input's values. It cannot be captured and replayed (training.cuda_graphs).
  bool varies = false;
  /// Builds a tensor-parallel rank's part of the layer, with products summed over several tensor
  /// groups. Empty: the layer is not partitioned, and each rank holds and computes all of it.
  std::function<std::shared_ptr<Layer>(const TensorParallelPlace&)> build_shard{};
  /// Sets the numbers of a built layer, or of a rank's part of it, from elsewhere, such as a file.
  /// It reads only the parts that the layer has. Layers with the same tied weight must get the same
  /// numbers. Empty: the layer keeps its initial numbers.
  std::function<void(Layer&, const TensorParallelPlace&)> fill{};
  /// True if an expert-parallel group can partition the layer: `build_shard` then builds the parts
  /// of its ranks, too.
  bool has_experts = false;
  /// Loss function of a last layer whose outputs are a tensor-parallel rank's part. Returns the
  /// mean loss, the same on all ranks. Empty: outputs are whole, and the training's loss function
  /// applies.
  std::function<at::Tensor(const Tensors& outputs, const Tensors& targets,
                           const TensorParallelPlace&)>
      shard_loss{};
  /// The kind of the layer, with everything that its work depends on except the input's shape. Two
  /// layers of one kind whose inputs have equal shapes cost the same, so only one of them is
  /// measured, also for other trainings. Empty: the layer is the only one of its kind.
  std::string kind{};
  /// The keyword arguments of a batch that the layer takes from its CallContext, on any stage. They
  /// come from the data and not from the previous stage, and have no gradient. A layer with
  /// keywords cannot be captured and replayed.
  std::vector<std::string> keywords{};
  /// The class that implements the layer, such as "torch::nn::LinearImpl". Empty: unknown.
  std::string type{};
  /// Seeds LibTorch's generator before the layer is built. Empty: the seed depends on `base_seed`
  /// and the layer's index.
  std::function<void(int base_seed, int layer)> seed{};
};

/// Returns true if the layer's work on one microbatch can be replayed for another.
inline bool can_be_replayed(const LayerSpec& layer) {
  return !layer.random && !layer.varies && layer.keywords.empty();
}

/// Returns the index of the tied weight with this name; nothing for other parameters.
std::optional<std::size_t> tied_place(const LayerSpec& layer, const std::string& parameter);

/// Returns the first layer with this layer's tied key, or the layer itself if it is not tied.
int tied_owner(const std::vector<LayerSpec>& specs, int layer);

/// Returns the layer and the name under which a parameter is known everywhere. For a tied weight
/// these are those of the first layer with its key.
std::pair<std::string, std::string> owner_name(const std::vector<LayerSpec>& specs, int layer,
                                               const std::string& parameter);

/// Returns, for each tied key, the stages that have a layer with it. `boundaries`: as in
/// plan::Partition.
std::map<std::string, std::set<int>> stages_of_keys(const std::vector<LayerSpec>& specs,
                                                    const std::vector<int>& boundaries);

/// Returns the mean loss of one microbatch from the last layer's outputs and the targets.
using Loss = std::function<at::Tensor(const Tensors& outputs, const Tensors& targets)>;

/// Returns the cross entropy over the last dimension of the first output, averaged over all others
/// except where the target is `ignored_target`.
at::Tensor cross_entropy(const Tensors& outputs, const Tensors& targets);

}  // namespace pipewright::exec
