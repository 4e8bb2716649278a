#pragma once

// A layer spec with a modified build function.

#include <memory>
#include <utility>

#include "pipewright/exec/training/layer_spec.hpp"

namespace pipewright::engine {

/// Replaces each function that builds the layer or a part of it by `change(build)`.
template <class Change>
exec::LayerSpec rebuilt(exec::LayerSpec layer, const Change& change) {
  layer.build = [change, build = std::move(layer.build)] { return change(build); };
  if (layer.build_shard)
    layer.build_shard =
        [change, build = std::move(layer.build_shard)](const exec::TensorParallelPlace& place) {
          return change([&] { return build(place); });
        };
  return layer;
}

}  // namespace pipewright::engine
