#pragma once

#include <vector>

namespace pipewright::plan {

/// The middle value; 0 for no values. Takes its argument by value to sort it.
double median(std::vector<double> values);

/// Interquartile range over median: how far apart repeated measurements lie, robust to outliers.
double spread(std::vector<double> values);

}  // namespace pipewright::plan
