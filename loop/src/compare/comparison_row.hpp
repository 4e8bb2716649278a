#pragma once

// A row of a comparison table for people: name, count, predicted value, measured value and error.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/quantity_text.hpp"

namespace pipewright::loop {

/// A unit for display, with the number of decimals that suits the largest value.
struct Display {
  plan::Unit unit;
  int decimals = 0;
};

/// Chooses the decimals so that `largest` has four significant digits: 12.30, 1234, 0.01230.
Display display(double largest, const plan::Unit& unit);

struct ComparisonRow {
  std::string what, count, predicted, measured, error;
};

/// Formats a row. A dash stands for a missing value.
ComparisonRow compared(std::string what, std::optional<double> predicted,
                       std::optional<double> measured, const Display& shown);

/// Returns the error in percent, or nothing if it is undefined.
std::optional<double> error_of(std::optional<double> predicted, std::optional<double> measured);

/// Formats the rows as aligned columns. The column of counts is left out if no row has one.
std::string table_of(const std::vector<ComparisonRow>& rows);

}  // namespace pipewright::loop
