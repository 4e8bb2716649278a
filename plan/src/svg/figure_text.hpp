#pragma once

// Quantities as figures show them: with the digits that a reader can use, and a unit.

#include <string>

#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan::drawing {

std::string memory_text(Bytes bytes);
std::string time_text(Seconds time);
std::string percent_text(Seconds part, Seconds whole);

/// The round step (1, 2 or 5 times a power of ten) that parts `length` into at most `most` pieces.
double round_step(double length, int most);
/// A multiple of such a step, with as many decimals as tell it from its neighbours; large ones in
/// millions ("2M") and so on.
std::string tick_text(double value, double step);

}  // namespace pipewright::plan::drawing
