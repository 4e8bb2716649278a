#pragma once

// Layers with types and shapes but without numbers, to find the size of a layer that may not fit
// into this machine's memory.

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pipewright/exec/training/layer.hpp"

namespace pipewright::exec {

/// While it exists, all tensors that this thread creates are LibTorch's "meta" tensors, whatever
/// device is requested. Filling them takes no time; reading their numbers throws c10::Error.
class WithoutMemory {
 public:
  WithoutMemory();
  ~WithoutMemory();
  WithoutMemory(const WithoutMemory&) = delete;
  WithoutMemory& operator=(const WithoutMemory&) = delete;

 private:
  c10::impl::IncludeDispatchKeyGuard guard_;
};

/// Builds layer `index` as `build_layer` does, but without numbers. If the layer reads its numbers
/// while it is built, it is built with them.
std::shared_ptr<Layer> build_without_memory(const std::vector<LayerSpec>& specs, int index);
/// Does the same with a training's precision.
std::shared_ptr<Layer> build_without_memory(const TrainingSetup& setup, int index,
                                            const TensorParallelPlace& place = {});

/// Returns the layer's outputs, without numbers, for inputs of these types and shapes. Returns
/// nothing if the outputs depend on numbers.
std::optional<Tensors> outputs_without_memory(const LayerSpec& spec, Layer& layer,
                                              const Tensors& inputs);

/// Returns the number of trained elements of the layer.
std::int64_t trained_numbers(const Layer& layer);

}  // namespace pipewright::exec
