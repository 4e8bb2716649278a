#pragma once

// Prints the catalog of schedules.

#include <string>

namespace pipewright::cli {

/// Returns every schedule at one size, in Markdown: its bubble and its peak activations next to the
/// formulas of the papers. docs/schedules.md contains this table.
std::string schedule_table();

}  // namespace pipewright::cli
