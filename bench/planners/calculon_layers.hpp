#pragma once

// A transformer block as Calculon models it: operations with their compute, memory traffic and
// saved bytes in each phase of training.

#include <array>
#include <cstddef>
#include <vector>

#include "planners/calculon_inputs.hpp"

namespace pipewright::planners {

enum class CalculonPhase { Forward, InputGradient, WeightGradient, Optimizer };
inline constexpr std::size_t calculon_phases = 4;

/// The way in which a layer's ranks communicate.
enum class CalculonComm { None, Apart, Tiled };  // Tiled: tile by tile while the layer computes

struct CalculonLayer {
  bool is_matrix = false;
  std::array<double, calculon_phases> operations{};
  std::array<double, calculon_phases> moved_bytes{};  // to and from memory

  double weights = 0;  // in elements
  double activation_bytes = 0;
  double output_bytes = 0;
  double gradient_bytes = 0;  // of the output
  bool keeps_activation = true;
  bool keeps_output = true;
  bool shares_activation = false;  // counted with another layer

  bool computed_again = false;  // in the backward
  bool exchanged_again = false;

  CalculonComm comm = CalculonComm::None;
  bool reduces = false;       // true: forward reduces, backward gathers; false: the reverse
  double gathered_bytes = 0;  // bytes of the whole input
  double reduced_bytes = 0;   // bytes of the whole output
};

std::vector<CalculonLayer> calculon_layers(const CalculonModel& model,
                                           const CalculonExecution& execution);

inline constexpr double calculon_element_bytes = 2;

}  // namespace pipewright::planners
