#pragma once

// From what transfers of many sizes took to the latency and bandwidth of their link, or to the
// segments that its curve has.

#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::plan {

/// What transfers of a size took: the median of several.
struct LinkSample {
  Bytes size;
  Seconds time;
  double spread = 0;  // interquartile range over median
  int repeats = 0;
  friend bool operator==(const LinkSample&, const LinkSample&) = default;
};

/// What no measurement can tell from no limit at all, in bytes per second.
inline constexpr double unlimited_bandwidth = 1e15;

struct LinkFit {
  Link link;  // its latency, bandwidth and segments
  /// By sample, in the order given: what the link says over what was measured, less 1.
  std::vector<double> residuals;
};

/// What a transfer takes from its start until it has arrived.
Seconds transfer_time(const Link& link, Bytes size);

/// The line, or the few lines one behind the other, that come nearest to the samples: relative
/// errors count, and one sample far from all others hardly does. Another segment must be worth its
/// parameters (the Bayesian information criterion) and have at least three samples. Throws
/// InputError for fewer than three sizes and for times that are none.
LinkFit fit_link(const std::vector<LinkSample>& samples, std::size_t most_segments = 4);

/// The same curve, slower by what later samples took beyond it: so much for each transfer, which
/// the smaller ones say, and so much for each byte, which the larger ones say. Never quicker.
/// Throws InputError for fewer than three sizes.
LinkFit slowed_down(const Link& link, const std::vector<LinkSample>& samples);

/// What transfers cost a rank: lines from sample to sample, as few as pass all others within 10 %.
/// A larger transfer costs no less than a smaller one: where it seems to, both are their mean.
/// Beyond the largest one each byte costs as much as before, or as on average if that is more.
/// Never nothing. Throws InputError for fewer than three sizes.
Overhead fit_overhead(const std::vector<LinkSample>& samples);

/// What rings took, as samples of a step: n devices pass on pieces of size/n in `rounds` (n - 1)
/// steps.
LinkSample ring_step(const LinkSample& ring, int devices, int rounds);

}  // namespace pipewright::plan
