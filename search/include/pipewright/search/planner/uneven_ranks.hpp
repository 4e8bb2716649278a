#pragma once

// Ranks with different devices: the speed and the memory of each, and the number of a transformer's
// layers that their stages get.

#include <optional>
#include <vector>

#include "pipewright/models/transformer/pipeline_shape.hpp"
#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::search {

/// The speed and memory by rank of a cut's pipelines: the least of the devices that a rank stands
/// for.
struct RankDevices {
  std::vector<double> speeds;       // relative to the device of the costs
  std::vector<plan::Bytes> memory;  // 0: unlimited
  friend bool operator==(const RankDevices&, const RankDevices&) = default;
};
RankDevices rank_devices(const plan::Cluster& cluster, const plan::Cut& cut);
bool have_one_speed(const RankDevices& devices);
bool have_one_memory(const RankDevices& devices);

/// Returns true if nodes or ranks differ, so that a plan must say which stage is on which.
bool has_uneven_ranks(const plan::Cluster& cluster);

/// The layers to distribute: `layers` that each take 1, and a head after them that takes `head`.
/// Each rank gets at most its entry in `most_of_rank` (empty: unlimited).
struct AssignedLayers {
  int layers = 0;
  double head = 0;
  std::vector<int> most_of_rank{};
};
/// Returns the layers by stage such that the busiest rank, by its speed, is busy for the shortest
/// time possible. Every stage has at least one layer; a rank's stages have equally many, or the
/// later ones one more. Returns nothing if the ranks' limits do not admit all layers.
std::optional<std::vector<int>> dealt_layers(const AssignedLayers& dealt,
                                             const models::PipelineShape& shape,
                                             const std::vector<double>& speeds);

}  // namespace pipewright::search
