#include "pipewright/plan/timeline/clock_offsets.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <utility>

// The minimum of (arrived - sent) over all passages from one rank to another bounds how far the
// clock of the second can be ahead. These are difference constraints. They have a solution if no
// cycle has a negative sum, and the shortest chains between two ranks give the tightest bounds. A
// spanning tree of midpoints would violate bounds outside the tree, and a least-squares fit could
// violate any. The midpoint between the shortest chains from and to the first rank violates none,
// because it is the mean of two solutions: the latest and the earliest.

namespace pipewright::plan {
namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();

/// An upper bound, in seconds, on how far the clock of `to` is ahead of that of `from`.
struct Bound {
  int from, to;
  double most;
};

std::vector<Bound> bounds_of(int ranks, const std::vector<ClockObservation>& passages) {
  std::map<std::pair<int, int>, double> least;
  for (const ClockObservation& passage : passages) {
    assert(std::min(passage.from, passage.to) >= 0 && std::max(passage.from, passage.to) < ranks);
    const double apart = (passage.arrived - passage.sent).value;
    double& known = least.try_emplace({passage.from, passage.to}, apart).first->second;
    known = std::min(known, apart);
  }
  (void)ranks;  // used only by the assert
  std::vector<Bound> bounds;
  bounds.reserve(least.size());
  for (const auto& [pair, apart] : least)
    bounds.push_back({pair.first, pair.second, apart});
  return bounds;
}

std::vector<Bound> reversed(std::vector<Bound> bounds) {
  for (Bound& bound : bounds)
    std::swap(bound.from, bound.to);
  return bounds;
}

/// Returns the minimum mean weight of a cycle of bounds (Karp, 1978). If d(k, v) is the least
/// weight of k bounds in a row from any rank to rank v, it is the minimum over v of the maximum
/// over k of (d(n, v) - d(k, v)) / (n - k). Infinite without a cycle.
double least_cycle_mean(int ranks, const std::vector<Bound>& bounds) {
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<std::vector<double>> chains(n + 1, std::vector<double>(n, unbounded));
  chains[0].assign(n, 0);
  for (std::size_t k = 1; k <= n; ++k)
    for (const auto& [from, to, most] : bounds) {
      double& chain = chains[k][static_cast<std::size_t>(to)];
      chain = std::min(chain, chains[k - 1][static_cast<std::size_t>(from)] + most);
    }
  double least = unbounded;
  for (std::size_t v = 0; v < n; ++v) {
    if (chains[n][v] == unbounded)
      continue;
    double most = -unbounded;
    for (std::size_t k = 0; k < n; ++k)
      most = std::max(most, (chains[n][v] - chains[k][v]) / static_cast<double>(n - k));
    least = std::min(least, most);
  }
  return least;
}

/// Lowers each label to the minimum that chains of bounds from other labels allow.
void tighten(std::vector<double>& labels, const std::vector<Bound>& bounds) {
  bool lowered = true;
  for (std::size_t round = 1; round < labels.size() && lowered; ++round) {
    lowered = false;
    for (const auto& [from, to, most] : bounds) {
      double& label = labels[static_cast<std::size_t>(to)];
      const double chain = labels[static_cast<std::size_t>(from)] + most;
      lowered |= chain < label;
      label = std::min(label, chain);
    }
  }
}

/// Determines the clock offsets, one group of connected ranks after the other.
class Placing {
 public:
  Placing(int ranks, const std::vector<Bound>& bounds)
      : ahead_(bounds),
        behind_(reversed(bounds)),
        placed_(static_cast<std::size_t>(ranks)),
        offset_(static_cast<std::size_t>(ranks)) {}

  bool is_placed(int rank) const { return placed_[static_cast<std::size_t>(rank)]; }

  /// Places all ranks that passages connect with `first`, on the clock of `first`.
  void place_group_of(int first) {
    place_between_chains(static_cast<std::size_t>(first));
    // The remaining ranks are bounded on one side only. Alternating between those that follow and
    // those that precede the placed ranks cannot violate a bound.
    while (place_at_bounds(ahead_, +1) || place_at_bounds(behind_, -1))
      uncertainty_ = unbounded;
  }

  const std::vector<Seconds>& offsets() const { return offset_; }
  Seconds uncertainty() const { return {uncertainty_}; }

 private:
  /// Places the ranks that have chains from and to `first` halfway between them.
  void place_between_chains(std::size_t first) {
    std::vector<double> latest(placed_.size(), unbounded);
    latest[first] = 0;
    std::vector<double> earliest = latest;
    tighten(latest, ahead_);
    tighten(earliest, behind_);
    for (std::size_t rank = 0; rank < placed_.size(); ++rank)
      if (latest[rank] < unbounded && earliest[rank] < unbounded) {
        place(rank, (latest[rank] - earliest[rank]) / 2);
        uncertainty_ = std::max(uncertainty_, (latest[rank] + earliest[rank]) / 2);
      }
  }

  /// Places the ranks that chains of these bounds reach from the placed ones, at the bound. Returns
  /// false if there are none.
  bool place_at_bounds(const std::vector<Bound>& bounds, double sign) {
    std::vector<double> labels(placed_.size(), unbounded);
    for (std::size_t rank = 0; rank < labels.size(); ++rank)
      if (placed_[rank])
        labels[rank] = sign * offset_[rank].value;
    tighten(labels, bounds);
    bool any = false;
    for (std::size_t rank = 0; rank < labels.size(); ++rank)
      if (!placed_[rank] && labels[rank] < unbounded) {
        place(rank, sign * labels[rank]);
        any = true;
      }
    return any;
  }

  void place(std::size_t rank, double offset) {
    placed_[rank] = true;
    offset_[rank] = {offset};
  }

  std::vector<Bound> ahead_, behind_;
  std::vector<bool> placed_;
  std::vector<Seconds> offset_;
  double uncertainty_ = 0;
};

}  // namespace

std::vector<ClockObservation> passages_of(const std::vector<ClockSource>& clocks) {
  std::vector<ClockObservation> passages;
  std::map<std::string, int> first_of;
  for (int rank = 0; rank < static_cast<int>(clocks.size()); ++rank) {
    const ClockSource& own = clocks[static_cast<std::size_t>(rank)];
    if (own.name.empty())
      continue;
    const int other = first_of.try_emplace(own.name, rank).first->second;
    if (other == rank)
      continue;
    // The instant at which the first clock showed 0, by both clocks.
    const Seconds here = clocks[static_cast<std::size_t>(other)].shown - own.shown;
    passages.push_back({other, rank, Seconds{}, here});
    passages.push_back({rank, other, here, Seconds{}});
  }
  return passages;
}

ClockOffsets clock_offsets(int ranks, const std::vector<ClockObservation>& passages) {
  assert(ranks > 0);
  std::vector<Bound> bounds = bounds_of(ranks, passages);
  const double residual = std::max(0.0, -least_cycle_mean(ranks, bounds));
  for (Bound& bound : bounds)
    bound.most += residual;

  Placing placing(ranks, bounds);
  placing.place_group_of(0);
  ClockOffsets clocks{.offset = {}, .residual = {residual}, .uncertainty = {}, .unjoined = {}};
  for (int rank = 0; rank < ranks; ++rank)
    if (!placing.is_placed(rank))
      clocks.unjoined.push_back(rank);
  for (const int rank : clocks.unjoined)
    if (!placing.is_placed(rank))
      placing.place_group_of(rank);
  clocks.offset = placing.offsets();
  clocks.uncertainty = placing.uncertainty();
  return clocks;
}

}  // namespace pipewright::plan
