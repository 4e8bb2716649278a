#pragma once

// Divides a model into sections for measuring: consecutive layers that are built, measured and
// dropped together. So a model may be larger than the machine that measures it, and a small model
// is one section, whose caches are as cold as in training.

#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/profiler/layers/outline.hpp"

namespace pipewright::profiler {

/// Layers [first, last). The section that ends with the model's last layer also has the loss.
struct Section {
  int first = 0;
  int last = 0;
  friend bool operator==(const Section&, const Section&) = default;
};

/// The default limit for the weights in all copies of a section; larger than the caches of most
/// machines.
inline constexpr plan::Bytes section_budget{200'000'000};

/// Returns as few sections as possible with at most `budget` bytes for all copies of each, and at
/// least one layer in each.
std::vector<Section> sections_of(const std::vector<LayerOutline>& outlines, int copies,
                                 plan::Bytes budget);

/// A set of equivalent layers: layers of one kind whose inputs have equal shapes.
struct EquivalentLayers {
  std::vector<int> layers;    // indices in the model
  std::vector<int> measured;  // the measured ones
  double within = 0;  // largest deviation of one's compute time from the first one's, as a share
  plan::LayerCost typical{};  // of all measured ones; has the first one's name
};

/// Returns the sets of equivalent layers, in the order of their first layers. Layers whose `alike`
/// is empty are in no set.
std::vector<EquivalentLayers> alike_layers(const std::vector<LayerOutline>& outlines);

/// Returns, by layer with the loss last, if it must be measured: the first, the middle and the last
/// layer of each set of equivalent layers, and all layers in no set. `known` marks layers that need
/// not be measured; it may be empty.
std::vector<bool> wanted_places(const std::vector<LayerOutline>& outlines,
                                const std::vector<bool>& known);

/// Returns true if one of its layers is wanted.
bool is_wanted(const Section& section, const std::vector<bool>& wanted);

}  // namespace pipewright::profiler
