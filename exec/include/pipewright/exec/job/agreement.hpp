#pragma once

// Compares the settings that the ranks of a job were started with, so that all train the same.

#include <string>
#include <utility>
#include <vector>

#include "pipewright/exec/job/job.hpp"

namespace pipewright::exec {

/// The settings that must be equal on all ranks, such as {"version", "1.2"} and {"Program",
/// "9f3a…"}.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Must be called by every rank. If settings differ, throws InputError on all ranks that says which
/// ranks differ in what.
void require_agreement(Job& job, const Facts& facts);

}  // namespace pipewright::exec
