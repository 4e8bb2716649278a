#pragma once

// Measures links through the same transport that the executor uses: with the same messages, in
// passes that begin as a step does, and with sums computed as those of gradients are.

#include <atomic>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/transport/transport.hpp"
#include "pipewright/plan/cluster/link_samples.hpp"

namespace pipewright::profiler {

/// The ranks that measure one kind of link. Rank 0 leads: its clock decides when to end.
struct LinkRanks {
  std::vector<std::pair<int, int>> pairs;  // each of two different ranks, the lower one first
  // Ascending; sums are measured over the first 2, 3, … of them.
  std::vector<int> ring;
};

struct LinkLimits {
  plan::Bytes largest{std::int64_t{1} << 28};
  plan::Seconds within{10};  // limits the growth of sizes
};

/// A rank's place. All `ranks` call `measure_links` with the same arguments, each on its own
/// thread.
struct LinkPlace {
  exec::Transport& transport;
  int rank = 0;
  int ranks = 1;
  exec::RankDevice device{};
  /// The number of ranks that compute on this node during training, as separate processes. If it is
  /// not 0, a pair is also measured while these compute.
  int computing_ranks = 0;
};

/// Called by the leader with the next measurement.
using LinkProgress = std::function<void(const char* what, plan::Bytes size)>;

/// Measures the links. Each sample is the median of several repeats in three rounds through all
/// sizes, so that a disturbance of one second does not affect one size alone. Returns nothing if
/// the leader was stopped. Throws exec::Aborted if another rank has ended.
std::optional<plan::LinkSamples> measure_links(const LinkPlace& place, const LinkRanks& who,
                                               const LinkLimits& limits,
                                               const LinkProgress& progress = {},
                                               const std::atomic<bool>* stop = nullptr);

}  // namespace pipewright::profiler
