#pragma once

// A chain of layers that is measured in sections: consecutive layers that are built, measured and
// dropped together. So a model may be larger than the machine that measures it; and a small one is
// one section, whose caches are as cold as in training.

#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/profiler/layers/outline.hpp"

namespace pipewright::profiler {

/// Layers [first, last); the one behind the last of the model's has the loss.
struct Section {
  int first = 0;
  int last = 0;
  friend bool operator==(const Section&, const Section&) = default;
};

/// Of the weights in all copies of a section: beyond the caches of most machines.
inline constexpr plan::Bytes section_budget{200'000'000};

/// As few as there can be with at most `budget` for all copies of each, but of one layer at least.
std::vector<Section> sections_of(const std::vector<LayerOutline>& outlines, int copies,
                                 plan::Bytes budget);

/// Layers that are alike.
struct AlikeLayers {
  std::vector<int> layers;    // counted over the model
  std::vector<int> measured;  // of those
  double within = 0;  // how far the forward and backward of one of these lie from the first one's
  plan::LayerCost typical{};  // of all of these; the name is that of the first
};

/// Those of each kind, in the order of their first ones; layers like no other have none.
std::vector<AlikeLayers> alike_layers(const std::vector<LayerOutline>& outlines);

/// By layer, the loss last: whether it is one that is measured for all that are alike, the first,
/// the one in the middle and the last of them. `known`: those that need not be; empty: none.
std::vector<bool> wanted_places(const std::vector<LayerOutline>& outlines,
                                const std::vector<bool>& known);

/// Whether one of its layers is wanted.
bool is_wanted(const Section& section, const std::vector<bool>& wanted);

}  // namespace pipewright::profiler
