#pragma once

// What a training is told apart by in its checkpoints: its settings, and the shapes of its layers.

#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/training/training_setup.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::exec {

/// What a checkpoint of this training says of it, and what one must say to go on with it. `device`:
/// what computes, in words.
TrainingState training_state(const TrainingSetup& setup, const plan::Program& program, int replicas,
                             int next_step, const std::string& device);

/// The parameters of every layer, without their numbers: for `check_load`.
std::vector<LayerShape> shapes_of(const TrainingSetup& setup);

}  // namespace pipewright::exec
