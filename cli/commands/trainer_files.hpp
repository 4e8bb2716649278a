#pragma once

// Beside a plan that is written, what other trainers are told of it.

#include <filesystem>

#include "pipewright/models/trainers/trainer_file.hpp"

namespace pipewright::cli {

/// A file for each trainer that can run the plan, whose stages' borders are named.
void write_trainer_files(const std::filesystem::path& folder, const plan::Scenario& scenario);

}  // namespace pipewright::cli
