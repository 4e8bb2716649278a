#pragma once

// Writes the arguments of other trainers with a plan.

#include <filesystem>

#include "pipewright/models/trainers/trainer_file.hpp"

namespace pipewright::cli {

/// Writes a file for each trainer that can run the plan, and prints why the others have none. The
/// scenario's stage boundaries must be explicit.
void write_trainer_files(const std::filesystem::path& folder, const plan::Scenario& scenario);

}  // namespace pipewright::cli
