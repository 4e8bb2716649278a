#pragma once

#include "options/scenario_options.hpp"
#include "options/torch_options.hpp"

namespace pipewright::cli {

/// Reads a scenario that is about to be trained, and opens its devices. Refuses, before anything is
/// measured, what training cannot do (InputError), communicators that deadlock (Infeasible), and,
/// where it is to be verified, a schedule whose training is another than any without a pipeline
/// (InputError).
plan::Scenario read_trainable(const ScenarioOptions& options, const DeviceOptions& device,
                              bool verify);

}  // namespace pipewright::cli
