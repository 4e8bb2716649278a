#pragma once

// Values that skip layers: each is put aside after one layer, carried along behind what the layers
// in between pass on, from stage to stage where need be, and combined again before a later layer.

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "pipewright/exec/training/layer_spec.hpp"

namespace pipewright::engine {

/// Puts the first tensor aside, under a name, and passes it on as well.
struct PushSkip {
  std::string name;
};

/// Takes back what was put aside under that name: the first tensor becomes
/// `combine(first tensor, skip)`.
struct PopSkip {
  std::string name;
  std::function<at::Tensor(const at::Tensor& value, const at::Tensor& skip)> combine;
};

/// A mark between two items: a stage ends here, and the next one begins.
struct PipeSplit {};

using ModelItem = std::variant<exec::LayerSpec, PushSkip, PopSkip, PipeSplit>;

/// The items as layers. The layers between a push and its pop do not see the skip. A push is a
/// layer "push NAME" of its own, a pop a layer "pop NAME". Throws InputError for a push without a
/// pop, a pop without a push, or a second push while the first is open.
std::vector<exec::LayerSpec> with_skips(const std::vector<ModelItem>& items);

/// Where the marks stand, for PipelineOptions::partition: {0, 2, 5} for a mark behind the second of
/// five layers. Throws InputError for a mark in front of or behind all layers, or two at one place.
std::vector<int> boundaries_at_marks(const std::vector<ModelItem>& items);

/// The layer acts on the first tensor; the others, such as a mask, are passed on behind what it
/// gives.
exec::LayerSpec relay(const exec::LayerSpec& layer);

}  // namespace pipewright::engine
