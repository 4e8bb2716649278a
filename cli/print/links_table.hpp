#pragma once

// Prints measured links as text.

#include <string>

#include "pipewright/loop/record/link_report.hpp"

namespace pipewright::cli {

/// Returns the times of transfers of each size, and the error of the link that was fitted to them.
std::string links_table(const loop::MeasuredLink& link);

}  // namespace pipewright::cli
