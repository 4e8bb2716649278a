#pragma once

// Fits a link's latency and bandwidth, or the segments of its curve, to the measured times of
// transfers of many sizes.

#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::plan {

/// Measured time of transfers of one size: the median of several repeats.
struct LinkSample {
  Bytes size;
  Seconds time;
  double spread = 0;  // interquartile range over median
  int repeats = 0;
  friend bool operator==(const LinkSample&, const LinkSample&) = default;
};

/// Bandwidth that no measurement can distinguish from an unlimited one, in bytes per second.
inline constexpr double unlimited_bandwidth = 1e15;

/// A fitted link with its residuals.
struct LinkFit {
  Link link;  // with fitted latency, bandwidth and segments
  /// Fitted time over measured time, minus 1, for each sample in the order given.
  std::vector<double> residuals;
};

/// Returns the time of a transfer from its start until it has arrived.
Seconds transfer_time(const Link& link, Bytes size);

/// Returns the line, or the sequence of a few lines, that fits the samples best. Relative errors
/// count, and outliers count little. Another segment must be worth its parameters (the Bayesian
/// information criterion) and have at least three samples. Throws InputError for fewer than three
/// sizes and for times that are not positive and finite.
LinkFit fit_link(const std::vector<LinkSample>& samples, std::size_t most_segments = 4);

/// Returns the same curve with the extra time of later samples added: a constant per transfer,
/// estimated from the smaller samples, and a time per byte, estimated from the larger ones. The
/// result is never faster than `link`. Throws InputError for fewer than three sizes.
LinkFit slowed_down(const Link& link, const std::vector<LinkSample>& samples);

/// Fits a rank's overhead of transfers: lines from sample to sample, as few as stay within 10 % of
/// all others. A larger transfer costs no less than a smaller one: samples that contradict this are
/// averaged. Beyond the largest sample, each byte costs as much as before, or as much as on average
/// if that is more. The overhead is never zero. Throws InputError for fewer than three sizes.
Overhead fit_overhead(const std::vector<LinkSample>& samples);

/// Converts a measured ring collective to a sample of one of its steps: n devices pass pieces of
/// size/n around in `rounds` · (n − 1) steps.
LinkSample ring_step(const LinkSample& ring, int devices, int rounds);

}  // namespace pipewright::plan
