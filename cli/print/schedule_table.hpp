#pragma once

// The catalogue of schedules, for people.

#include <string>

namespace pipewright::cli {

/// Every schedule at one size, in Markdown: what its bubble and its peak activations are, beside
/// the formulas of the papers. docs/schedules.md holds this table.
std::string schedule_table();

}  // namespace pipewright::cli
