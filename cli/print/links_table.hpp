#pragma once

// Measured links, for people.

#include <string>

#include "pipewright/loop/record/link_report.hpp"

namespace pipewright::cli {

/// What transfers of each size took, and how far the link that was fitted to them is off.
std::string links_table(const loop::MeasuredLink& link);

}  // namespace pipewright::cli
