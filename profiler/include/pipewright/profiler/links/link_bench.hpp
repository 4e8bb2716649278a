#pragma once

// Measures links through the very transport that the executor uses: the same messages, in passes
// that begin as a step's do, and sums that are made as those of gradients are.

#include <atomic>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/transport/transport.hpp"
#include "pipewright/plan/cluster/link_samples.hpp"

namespace pipewright::profiler {

/// Who measures one kind of link. The first rank of all leads: its clock says when to end.
struct LinkRanks {
  std::vector<std::pair<int, int>> pairs;  // of different ranks, the lower one first
  std::vector<int> ring;                   // rising; sums over the first 2, 3, … of them
};

struct LinkLimits {
  plan::Bytes largest{std::int64_t{1} << 28};
  plan::Seconds within{10};  // sizes grow no further than that allows
};

/// A rank's place: all of `ranks` call `measure_links` alike, each on a thread of its own.
struct LinkPlace {
  exec::Transport& transport;
  int rank = 0;
  int ranks = 1;
  exec::RankDevice device{};
  /// How many ranks compute on this node when it trains, as processes of their own: a pair is then
  /// measured while they do as well. 0: it is not.
  int computing_ranks = 0;
};

/// Called by the leader with what is measured next.
using LinkProgress = std::function<void(const char* what, plan::Bytes size)>;

/// Each sample is the median of several repeats, spread over three rounds through all sizes, so
/// that what disturbs the machine for a second disturbs no size alone. Nothing where the leader was
/// stopped. Throws exec::Aborted where another rank has ended.
std::optional<plan::LinkSamples> measure_links(const LinkPlace& place, const LinkRanks& who,
                                               const LinkLimits& limits,
                                               const LinkProgress& progress = {},
                                               const std::atomic<bool>* stop = nullptr);

}  // namespace pipewright::profiler
