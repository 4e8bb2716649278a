#pragma once

// Skip connections across layers. A value is set aside after one layer, sent along with the
// activations, across stages if necessary, and combined again before a later layer.

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "pipewright/exec/training/layer_spec.hpp"

namespace pipewright::engine {

/// An item that sets the first tensor aside under a name, and passes it on as well.
struct PushSkip {
  std::string name;
};

/// An item that takes back the tensor set aside under that name: the first tensor becomes
/// `combine(first tensor, skip)`.
struct PopSkip {
  std::string name;
  std::function<at::Tensor(const at::Tensor& value, const at::Tensor& skip)> combine;
};

/// A stage boundary between two items.
struct PipeSplit {};

using ModelItem = std::variant<exec::LayerSpec, PushSkip, PopSkip, PipeSplit>;

/// Returns the items as layers. Layers between a push and its pop do not see the skip. A push
/// becomes a layer "push NAME", a pop a layer "pop NAME". Throws InputError for a push without a
/// pop, a pop without a push, or a second push while the first is open.
std::vector<exec::LayerSpec> with_skips(const std::vector<ModelItem>& items);

/// Returns the boundaries at the PipeSplit items, for PipelineOptions::partition: {0, 2, 5} for a
/// split after the second of five layers. Throws InputError for a split before the first or after
/// the last layer, or two splits at one place.
std::vector<int> boundaries_at_marks(const std::vector<ModelItem>& items);

/// Returns a layer that acts on the first tensor and passes the others, such as a mask, on after
/// its own outputs.
exec::LayerSpec relay(const exec::LayerSpec& layer);

}  // namespace pipewright::engine
