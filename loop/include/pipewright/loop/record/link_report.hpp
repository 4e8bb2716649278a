#pragma once

// From samples of links to what is said of them and to the cluster that scenarios refer to.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/cluster/link_samples.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::loop {

/// How several pairs at once fare beside one: 1 is links of their own, `pairs` one link for all.
struct LinkSharing {
  int pairs = 0;
  double slow_down = 0;  // of large transfers
};

struct MeasuredLink {
  plan::LinkSamples samples;
  plan::Link link;                            // what a cluster gets
  plan::LinkFit fit;                          // of one way
  std::optional<plan::LinkFit> computing{};   // while ranks compute: transfers are as it says
  std::optional<plan::LinkFit> sums;          // of a step of their rings, over all numbers of ranks
  std::optional<plan::LinkFit> shard_sums{};  // likewise, of sums among shards
  std::optional<double> both_ways;            // large transfers beside those of one way
  std::vector<LinkSharing> sharing;
};

/// Throws InputError where there are too few samples.
MeasuredLink measured_link(const plan::LinkSamples& samples);

/// Or whether its pairs are more processes than train, which stand in each other's way. The most
/// pairs that say it decide.
bool says_whether_shared(const plan::LinkSamples& samples, const LinkSharing& sharing);

/// "Gloo, within a node"
std::string name_of(const plan::LinkSamples& samples);

/// The cluster with the links that were measured: the last one of a kind counts. One with a link
/// between nodes has two of them at least.
plan::Cluster with_links(plan::Cluster cluster, const std::vector<MeasuredLink>& links);

/// All samples with their residuals, all fits.
plan::Json to_json(const MeasuredLink& link);

}  // namespace pipewright::loop
