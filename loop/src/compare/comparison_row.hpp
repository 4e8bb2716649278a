#pragma once

// One line of a comparison for people: what, how often, predicted, measured, error.

#include <optional>
#include <string>
#include <vector>

namespace pipewright::loop {

/// A unit that figures are shown in, with the decimals that suit the largest of them.
struct Display {
  double unit = 1;
  const char* name = "";
  int decimals = 0;
};

/// Four digits that count: 12.30, 1234, 0.01230.
Display display(double largest, double unit, const char* name);

struct ComparisonRow {
  std::string what, count, predicted, measured, error;
};

/// A dash stands for what is not there.
ComparisonRow compared(std::string what, std::optional<double> predicted,
                       std::optional<double> measured, const Display& shown);

/// In per cent; nothing where there is none to give.
std::optional<double> error_of(std::optional<double> predicted, std::optional<double> measured);

/// Columns as wide as they must be; no column of counts where no row has one.
std::string table_of(const std::vector<ComparisonRow>& rows);

}  // namespace pipewright::loop
