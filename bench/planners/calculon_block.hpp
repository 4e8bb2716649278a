#pragma once

// Sums over the layers of one block, for one microbatch on one device.

#include <array>

#include "planners/calculon_layers.hpp"

namespace pipewright::planners {

/// A block within a chunk of the pipeline, or the one at its border.
struct CalculonPlaces {
  double within = 0;
  double border = 0;
};

/// Seconds of one phase.
struct CalculonWork {
  double operations = 0;
  double memory = 0;
  double both = 0;  // together, as the machine overlaps them
};

struct CalculonBlock {
  std::array<CalculonWork, calculon_phases> work{};
  CalculonWork again;  // what is computed a second time; its parts are sums of all before it, too
  // Exchanges of tensor parallel ranks: what compute waits for.
  CalculonPlaces forward_waits, backward_waits, again_waits;
  // What they take.
  CalculonPlaces backward_exchange, again_exchange;

  double weight_bytes = 0;
  double working_bytes = 0;     // activations while the block computes
  double stored_bytes = 0;      // activations from forward to backward
  double checkpoint_bytes = 0;  // where all is computed again
  double weight_gradient_bytes = 0;
  double whole_weight_gradient_bytes = 0;  // of 32 bits, not shared among replicas
  double activation_gradient_bytes = 0;
  double optimizer_bytes = 0;

  const CalculonWork& of(CalculonPhase phase) const {
    return work[static_cast<std::size_t>(phase)];
  }
};

CalculonBlock calculon_block(const CalculonModel& model, const CalculonMachine& machine,
                             const CalculonExecution& execution);

}  // namespace pipewright::planners
