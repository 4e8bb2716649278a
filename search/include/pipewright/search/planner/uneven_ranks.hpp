#pragma once

// Ranks of unlike devices: how fast each computes, what it may hold, and how many of a
// transformer's layers their stages get.

#include <optional>
#include <vector>

#include "pipewright/models/transformer/pipeline_shape.hpp"
#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::search {

/// By rank of a cut's pipelines: the least of the devices that stand for it.
struct RankDevices {
  std::vector<double> speeds;       // beside the device that costs are of
  std::vector<plan::Bytes> memory;  // 0: without an end
  friend bool operator==(const RankDevices&, const RankDevices&) = default;
};
RankDevices rank_devices(const plan::Cluster& cluster, const plan::Cut& cut);
bool have_one_speed(const RankDevices& devices);
bool have_one_memory(const RankDevices& devices);

/// Whether nodes or ranks differ, so that a plan has to say which stage goes where.
bool has_uneven_ranks(const plan::Cluster& cluster);

/// What is dealt out: `layers` that each take 1, a head behind them that takes `head`, and no rank
/// gets more than `most_of_rank` of them (empty: as many as come).
struct DealtLayers {
  int layers = 0;
  double head = 0;
  std::vector<int> most_of_rank{};
};
/// By stage: the rank that is busy longest, by its speed, is so as short as it can be. Every stage
/// has at least one; a rank's stages have as many as each other, or one more, the later ones.
/// Nothing where ranks may not have as many as there are.
std::optional<std::vector<int>> dealt_layers(const DealtLayers& dealt,
                                             const models::PipelineShape& shape,
                                             const std::vector<double>& speeds);

}  // namespace pipewright::search
