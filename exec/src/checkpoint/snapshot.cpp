#include "pipewright/exec/checkpoint/snapshot.hpp"

#include <ATen/ATen.h>

#include "pipewright/exec/memory/memory_left.hpp"

namespace pipewright::exec {

plan::Bytes size_of(const Snapshot& snapshot) {
  plan::Bytes all;
  for (const LayerState& layer : snapshot.layers)
    for (const auto* const tensors : {&layer.parameters, &layer.optimizer})
      for (const NamedTensor& tensor : *tensors)
        all += {static_cast<std::int64_t>(tensor.value.nbytes())};
  return all;
}

bool has_room_for_copy(const Snapshot& snapshot) {
  return 1.1 * static_cast<double>(size_of(snapshot).value) <=
         static_cast<double>(memory_left().value);
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
