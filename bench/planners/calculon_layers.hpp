#pragma once

// A transformer's block as Calculon sees it: operations with what they compute, move and keep, by
// the phase of training.

#include <array>
#include <cstddef>
#include <vector>

#include "planners/calculon_inputs.hpp"

namespace pipewright::planners {

enum class CalculonPhase { Forward, InputGradient, WeightGradient, Optimizer };
inline constexpr std::size_t calculon_phases = 4;

/// How a layer's ranks exchange.
enum class CalculonComm { None, Apart, Tiled };  // Tiled: while the layer computes, tile by tile

struct CalculonLayer {
  bool is_matrix = false;
  std::array<double, calculon_phases> operations{};
  std::array<double, calculon_phases> moved_bytes{};  // by the memory

  double weights = 0;  // elements
  double activation_bytes = 0;
  double output_bytes = 0;
  double gradient_bytes = 0;  // of the output
  bool keeps_activation = true;
  bool keeps_output = true;
  bool shares_activation = false;  // counted with another layer

  bool computed_again = false;  // in the backward pass
  bool exchanged_again = false;

  CalculonComm comm = CalculonComm::None;
  bool reduces = false;       // forward sums, backward gathers; the others the other way round
  double gathered_bytes = 0;  // what its input takes, whole
  double reduced_bytes = 0;   // what its output takes, whole
};

std::vector<CalculonLayer> calculon_layers(const CalculonModel& model,
                                           const CalculonExecution& execution);

inline constexpr double calculon_element_bytes = 2;

}  // namespace pipewright::planners
