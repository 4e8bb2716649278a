#pragma once

#include <functional>

#include "pipewright/loop_torch/membership.hpp"

namespace pipewright::cli {

/// Runs a member's part of a job and gives the exit code. What it throws ends the others as well,
/// and one process prints why. Without a job it is the caller's to catch.
int with_job_report(loop::Membership& members, const std::function<int()>& part);

}  // namespace pipewright::cli
