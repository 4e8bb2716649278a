#pragma once

// Turns samples of links into a report and into the links of a cluster.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/cluster/link_samples.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::loop {

/// How several concurrent pairs compare with a single pair. A slow-down of 1 means that each pair
/// has its own link; a slow-down of `pairs` means that all share one link.
struct LinkSharing {
  int pairs = 0;
  double slow_down = 0;  // for large transfers
};

struct MeasuredLink {
  plan::LinkSamples samples;
  plan::Link link;    // the fitted link, as a cluster contains it
  plan::LinkFit fit;  // one direction, while ranks are idle
  /// While ranks compute; `link` uses this one for transfers.
  std::optional<plan::LinkFit> computing{};
  /// One step of a ring all-reduce, over all numbers of ranks.
  std::optional<plan::LinkFit> sums;
  std::optional<plan::LinkFit> tensor_parallel_sums{};  // the same for tensor-parallel all-reduces
  /// Time of large transfers in both directions, over the time of one direction.
  std::optional<double> both_ways;
  std::vector<LinkSharing> sharing;
};

/// Fits a link to its samples. Throws InputError if there are too few.
MeasuredLink measured_link(const plan::LinkSamples& samples);

/// Returns true if this measurement may decide whether the link is shared. It may not if its pairs
/// are more processes than the training has, because such processes compete for cores. Among the
/// measurements that may decide, the one with the most pairs counts.
bool decides_sharing(const plan::LinkSamples& samples, const LinkSharing& sharing);

/// Returns a name such as "Gloo, within a node".
std::string name_of(const plan::LinkSamples& samples);

/// Returns the cluster with the measured links; of several measurements of a kind, the last one
/// counts. A cluster with a measured link between nodes gets at least two nodes.
plan::Cluster with_links(plan::Cluster cluster, const std::vector<MeasuredLink>& links);

/// Returns all samples with their residuals, and all fits.
plan::Json to_json(const MeasuredLink& link);

}  // namespace pipewright::loop
