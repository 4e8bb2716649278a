#pragma once

// Summaries of repeated measurements: the median, the mean, and how much the values vary.

#include <vector>

namespace pipewright::plan {

/// Returns the median; 0 for no values. Takes its argument by value to sort it.
double median(std::vector<double> values);

/// Returns the mean of the middle 90 % of the values: a mean that ignores the few repeats that
/// something else delayed. 0 for no values.
double typical_mean(std::vector<double> values);

/// Returns the 90th percentile of the values' distances from the median, over the median; 0 for no
/// values.
double drift(std::vector<double> values);

/// Returns the interquartile range over the median: the variation of repeated measurements, robust
/// to outliers.
double spread(std::vector<double> values);

}  // namespace pipewright::plan
