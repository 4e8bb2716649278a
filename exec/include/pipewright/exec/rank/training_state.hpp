#pragma once

// The identity of a training in its checkpoints: its settings, and the shapes of its layers.

#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/training/training_setup.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::exec {

/// Returns the state that a checkpoint of this training records, and that a checkpoint must match
/// to resume it. `device`: a description of the computing device.
TrainingState training_state(const TrainingSetup& setup, const plan::Program& program, int replicas,
                             int next_step, const std::string& device);

/// Returns the parameters' shapes of every layer, for `check_load`.
std::vector<LayerShape> shapes_of(const TrainingSetup& setup);

}  // namespace pipewright::exec
