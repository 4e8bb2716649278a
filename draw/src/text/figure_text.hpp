#pragma once

// Formats quantities for figures, with three significant digits and a unit.

#include <string>

#include "pipewright/plan/quantity.hpp"

namespace pipewright::draw {

std::string memory_text(plan::Bytes bytes);
std::string time_text(plan::Seconds time);
std::string percent_text(plan::Seconds part, plan::Seconds whole);

/// Returns the smallest round step (1, 2 or 5 times a power of ten) that divides `length` into at
/// most `most` pieces.
double round_step(double length, int most);
/// Formats a multiple of such a step with as many decimals as the step needs. Large numbers are
/// written in millions ("2M") and so on.
std::string tick_text(double value, double step);

}  // namespace pipewright::draw
