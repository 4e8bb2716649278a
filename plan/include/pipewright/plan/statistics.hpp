#pragma once

// What repeated measurements amount to: their middle, their mean, how far they lie apart.

#include <vector>

namespace pipewright::plan {

/// The middle value; 0 for no values. Takes its argument by value to sort it.
double median(std::vector<double> values);

/// The mean of the nine tenths in the middle: what many repeats add up to, without the few that
/// something else has held up. 0 for no values.
double typical_mean(std::vector<double> values);

/// How far nine of ten values lie from the middle one at most, over it; 0 for no values.
double drift(std::vector<double> values);

/// Interquartile range over median: how far apart repeated measurements lie, robust to outliers.
double spread(std::vector<double> values);

}  // namespace pipewright::plan
