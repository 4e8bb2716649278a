#include "pipewright/exec/checkpoint/snapshot.hpp"

#include <ATen/ATen.h>

namespace pipewright::exec {

plan::Bytes size_of(const Snapshot& snapshot) {
  plan::Bytes all;
  for (const LayerState& layer : snapshot.layers)
    for (const auto* const tensors : {&layer.parameters, &layer.optimizer})
      for (const NamedTensor& tensor : *tensors)
        all += {static_cast<std::int64_t>(tensor.value.nbytes())};
  return all;
}

Snapshot copies_of(Snapshot snapshot) {
  for (LayerState& layer : snapshot.layers)
    for (auto* const tensors : {&layer.parameters, &layer.optimizer})
      for (NamedTensor& tensor : *tensors)
        if (tensor.value.storage().use_count() > 1)
          tensor.value = tensor.value.detach().clone(at::MemoryFormat::Contiguous);
  return snapshot;
}

}  // namespace pipewright::exec
