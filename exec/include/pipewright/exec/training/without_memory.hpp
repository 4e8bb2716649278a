#pragma once

// Layers that have types and shapes and no numbers: for whoever asks how large a layer is, and need
// not hold one that is larger than this machine.

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pipewright/exec/training/layer.hpp"

namespace pipewright::exec {

/// While it lives, what this thread makes anew are LibTorch's "meta" tensors, for whatever device
/// they were asked. Filling them takes no time; asking for their numbers throws c10::Error.
class WithoutMemory {
 public:
  WithoutMemory();
  ~WithoutMemory();
  WithoutMemory(const WithoutMemory&) = delete;
  WithoutMemory& operator=(const WithoutMemory&) = delete;

 private:
  c10::impl::IncludeDispatchKeyGuard guard_;
};

/// Layer `index` as `build_layer` makes it, but without numbers. A layer that looks at its numbers
/// while it is made is made with them.
std::shared_ptr<Layer> build_without_memory(const std::vector<LayerSpec>& specs, int index);
/// The same as a training has it: in its precision.
std::shared_ptr<Layer> build_without_memory(const TrainingSetup& setup, int index,
                                            const ShardPlace& place = {});

/// What the layer makes of inputs of these types and shapes, without numbers either; nothing where
/// that depends on numbers.
std::optional<Tensors> outputs_without_memory(const LayerSpec& spec, Layer& layer,
                                              const Tensors& inputs);

/// How many numbers the layer trains.
std::int64_t trained_numbers(const Layer& layer);

}  // namespace pipewright::exec
