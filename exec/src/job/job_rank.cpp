#include "pipewright/exec/job/job_rank.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

bool has_axis(const plan::Topology& topology, const std::string& axis) {
  const auto& axes = topology.axes();
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

plan::Topology topology_of(int pipeline_ranks, int replicas, int shards,
                           const std::vector<std::string>& axes) {
  int ranks = 1;
  std::vector<int> lengths;
  for (const std::string& axis : axes) {
    lengths.push_back(axis == "pipe"     ? pipeline_ranks
                      : axis == "data"   ? replicas
                      : axis == "tensor" ? shards
                                         : 1);
    ranks *= lengths.back();
  }
  if (ranks != pipeline_ranks * replicas * shards)
    throw plan::InputError(fmt::format(
        "the axes {} omit an axis that has several ranks: pipe has {}, data {}, tensor {}",
        fmt::join(axes, ", "), pipeline_ranks, replicas, shards));
  return {axes, lengths};
}

/// Returns the distance in rank numbers between two neighbors along an axis.
int step_along(const plan::Topology& topology, const std::string& axis) {
  if (!has_axis(topology, axis))
    return 1;
  const auto groups = topology.groups_along(axis);
  return groups.front().size() < 2 ? 1 : groups.front()[1] - groups.front()[0];
}

std::vector<int> up_to(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

std::vector<int> JobRank::of_all_replicas(const std::vector<int>& pipeline_ranks) const {
  std::vector<int> ranks;
  for (const int each : pipeline_ranks)
    for (int copy = 0; copy < replicas; ++copy)
      ranks.push_back(at(each, copy, shard));
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::vector<int> JobRank::of_same_shard() const {
  return of_all_replicas(up_to(steps.ranks / (replicas * shards)));
}

std::vector<int> JobRank::of_all_shards() const {
  std::vector<int> ranks;
  for (int each = 0; each < shards; ++each)
    ranks.push_back(at(rank, replica, each));
  return ranks;
}

std::vector<int> JobRank::of_all_experts() const {
  std::vector<int> ranks;
  for (int each = 0; each < expert_ranks; ++each)
    ranks.push_back(at(rank, replica - part_of_experts() + each, shard));
  return ranks;
}

std::vector<int> JobRank::of_same_experts(const std::vector<int>& pipeline_ranks) const {
  std::vector<int> ranks;
  for (const int each : pipeline_ranks)
    for (int copy = part_of_experts(); copy < replicas; copy += expert_ranks)
      ranks.push_back(at(each, copy, shard));
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

JobGrid::JobGrid(int pipeline_ranks, int replicas, int shards, const std::vector<std::string>& axes,
                 int expert_ranks)
    : topology_(topology_of(pipeline_ranks, replicas, shards, axes)),
      steps_{step_along(topology_, "pipe"), step_along(topology_, "data"),
             step_along(topology_, "tensor"), topology_.rank_count()},
      expert_ranks_(expert_ranks) {
  if (expert_ranks < 1 || replicas % expert_ranks != 0)
    throw plan::InputError(fmt::format(
        "{} pipelines cannot be divided into expert-parallel groups of {} (pipeline.expert)",
        replicas, expert_ranks));
}

int JobGrid::length_of(const std::string& axis) const {
  return has_axis(topology_, axis) ? topology_.length_of(axis) : 1;
}

int JobGrid::place_of(int rank_in_job, const std::string& axis) const {
  return has_axis(topology_, axis) ? topology_.coordinate_of(rank_in_job, axis) : 0;
}

JobRank JobGrid::rank(int rank_in_job) const {
  JobRank rank;
  rank.rank = place_of(rank_in_job, "pipe");
  rank.replica = place_of(rank_in_job, "data");
  rank.replicas = length_of("data");
  rank.shard = place_of(rank_in_job, "tensor");
  rank.shards = length_of("tensor");
  rank.expert_ranks = expert_ranks_;
  rank.steps = steps_;
  return rank;
}

std::vector<int> JobGrid::first_pipeline() const {
  std::vector<int> ranks;
  for (int pipe = 0; pipe < length_of("pipe"); ++pipe)
    ranks.push_back(pipe * steps_.pipe);
  return ranks;
}

}  // namespace pipewright::exec
