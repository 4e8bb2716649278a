#pragma once

// A layer that is built in another way, whole or in part.

#include <memory>
#include <utility>

#include "pipewright/exec/training/layer_spec.hpp"

namespace pipewright::engine {

/// `change(build)` in place of each function that builds the layer or a part of it.
template <class Change>
exec::LayerSpec rebuilt(exec::LayerSpec layer, const Change& change) {
  layer.build = [change, build = std::move(layer.build)] { return change(build); };
  if (layer.build_shard)
    layer.build_shard = [change,
                         build = std::move(layer.build_shard)](const exec::ShardPlace& place) {
      return change([&] { return build(place); });
    };
  return layer;
}

}  // namespace pipewright::engine
