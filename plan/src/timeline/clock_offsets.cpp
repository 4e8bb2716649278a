#include "pipewright/plan/timeline/clock_offsets.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <utility>

// The least (arrived - sent) of all passages from one rank to another is the most by which the
// clock of the second can be ahead. These are difference constraints: they have a solution where
// no cycle of them has a negative sum, and the shortest chains between two ranks are the tightest
// bounds that all passages together give. A spanning tree of midpoints would break bounds outside
// the tree, a least squares fit could break any; the midpoint between the first rank's shortest
// chains to and from each rank breaks none, as it is the mean of two solutions: the latest and the
// earliest.

namespace pipewright::plan {
namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();

/// The clock of `to` is ahead of that of `from` by at most `most` seconds.
struct Bound {
  int from, to;
  double most;
};

std::vector<Bound> bounds_of(int ranks, const std::vector<Passage>& passages) {
  std::map<std::pair<int, int>, double> least;
  for (const Passage& passage : passages) {
    assert(std::min(passage.from, passage.to) >= 0 && std::max(passage.from, passage.to) < ranks);
    const double apart = (passage.arrived - passage.sent).value;
    double& known = least.try_emplace({passage.from, passage.to}, apart).first->second;
    known = std::min(known, apart);
  }
  (void)ranks;  // only the assert looks at it
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

/// The least mean of the bounds of any cycle (Karp, 1978): with k bounds in a row from any rank to
/// rank v at least d(k, v), it is the least over v of the most over k of (d(n, v) - d(k, v)) /
/// (n - k). Infinite without a cycle.
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

/// Lowers each label to the least that a chain of bounds allows from any other.
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

/// Places the clocks of one group of ranks after the other.
class Placing {
 public:
  Placing(int ranks, const std::vector<Bound>& bounds)
      : ahead_(bounds),
        behind_(reversed(bounds)),
        placed_(static_cast<std::size_t>(ranks)),
        offset_(static_cast<std::size_t>(ranks)) {}

  bool is_placed(int rank) const { return placed_[static_cast<std::size_t>(rank)]; }

  /// All ranks that passages join with `first`, whose clock is theirs from now on.
  void place_group_of(int first) {
    place_between_chains(static_cast<std::size_t>(first));
    // What is left has bounds to one side only. Alternately all that follow and all that precede
    // what is placed: then no bound can come to be broken.
    while (place_at_bounds(ahead_, +1) || place_at_bounds(behind_, -1))
      uncertainty_ = unbounded;
  }

  const std::vector<Seconds>& offsets() const { return offset_; }
  Seconds uncertainty() const { return {uncertainty_}; }

 private:
  /// The ranks that have chains from and to `first`: halfway between.
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

  /// The ranks that chains of these bounds reach from those placed: as far as they allow. False
  /// where there are none.
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

std::vector<Passage> passages_of(const std::vector<ClockSource>& clocks) {
  std::vector<Passage> passages;
  std::map<std::string, int> first_of;
  for (int rank = 0; rank < static_cast<int>(clocks.size()); ++rank) {
    const ClockSource& own = clocks[static_cast<std::size_t>(rank)];
    if (own.name.empty())
      continue;
    const int other = first_of.try_emplace(own.name, rank).first->second;
    if (other == rank)
      continue;
    // By both clocks at one instant: when the first one was 0.
    const Seconds here = clocks[static_cast<std::size_t>(other)].shown - own.shown;
    passages.push_back({other, rank, Seconds{}, here});
    passages.push_back({rank, other, here, Seconds{}});
  }
  return passages;
}

ClockOffsets clock_offsets(int ranks, const std::vector<Passage>& passages) {
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
