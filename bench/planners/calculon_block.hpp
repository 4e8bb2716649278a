#pragma once

// Sums of times and bytes over the layers of one block, for one microbatch on one device.

#include <array>

#include "planners/calculon_layers.hpp"

namespace pipewright::planners {

/// Values for a block within a chunk of the pipeline, and for the one at its boundary.
struct CalculonPlaces {
  double within = 0;
  double border = 0;
};

/// The seconds of one phase.
struct CalculonWork {
  double operations = 0;
  double memory = 0;
  double both = 0;  // together, overlapped if the machine can
};

struct CalculonBlock {
  std::array<CalculonWork, calculon_phases> work{};
  // Recomputation. Operations and memory add the block's sums up to each recomputed layer.
  CalculonWork again;
  // Tensor-parallel communication that compute waits for.
  CalculonPlaces forward_waits, backward_waits, again_waits;
  // All tensor-parallel communication.
  CalculonPlaces backward_exchange, again_exchange;

  double weight_bytes = 0;
  double working_bytes = 0;     // activations while the block computes
  double stored_bytes = 0;      // activations from forward to backward
  double checkpoint_bytes = 0;  // with full recomputation
  double weight_gradient_bytes = 0;
  double whole_weight_gradient_bytes = 0;  // 32 bits, not sharded among replicas
  double activation_gradient_bytes = 0;
  double optimizer_bytes = 0;

  const CalculonWork& of(CalculonPhase phase) const {
    return work[static_cast<std::size_t>(phase)];
  }
};

CalculonBlock calculon_block(const CalculonModel& model, const CalculonMachine& machine,
                             const CalculonExecution& execution);

}  // namespace pipewright::planners
