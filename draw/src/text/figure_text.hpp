#pragma once

// Quantities as figures show them: with the digits that a reader can use, and a unit.

#include <string>

#include "pipewright/plan/quantity.hpp"

namespace pipewright::draw {

std::string memory_text(plan::Bytes bytes);
std::string time_text(plan::Seconds time);
std::string percent_text(plan::Seconds part, plan::Seconds whole);

/// The round step (1, 2 or 5 times a power of ten) that parts `length` into at most `most` pieces.
double round_step(double length, int most);
/// A multiple of such a step, with as many decimals as tell it from its neighbours; large ones in
/// millions ("2M") and so on.
std::string tick_text(double value, double step);

}  // namespace pipewright::draw
