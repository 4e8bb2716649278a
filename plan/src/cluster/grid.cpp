#include "pipewright/plan/cluster/grid.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

bool has_axis(const Topology& topology, const std::string& axis) {
  const auto& axes = topology.axes();
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

std::vector<int> prime_factors(int number) {
  std::vector<int> factors;
  for (int prime = 2; prime <= number / prime; ++prime)
    for (; number % prime == 0; number /= prime)
      factors.push_back(prime);
  if (number > 1)
    factors.push_back(number);
  return factors;
}

}  // namespace

Grid::Grid(Topology topology) : topology_(std::move(topology)) {
  for (const char* axis : {"pipe", "data"})
    if (!has_axis(topology_, axis))
      throw InputError(fmt::format("a grid needs the axes pipe and data, but {} is missing", axis));
}

int Grid::model_size() const {
  return has_axis(topology_, "model") ? topology_.length_of("model") : 1;
}

int Grid::model_index_of(int rank) const {
  return has_axis(topology_, "model") ? topology_.coordinate_of(rank, "model") : 0;
}

int Grid::stage_to_global(int rank, int stage) const { return stage_to_global(rank, stage, {}); }

int Grid::stage_to_global(int rank, int stage, const std::vector<AxisIndex>& elsewhere) const {
  std::vector<AxisIndex> coordinate{{"pipe", stage}};
  for (const std::string& axis : topology_.axes())
    if (axis != "pipe" && std::none_of(elsewhere.begin(), elsewhere.end(),
                                       [&](const AxisIndex& given) { return given.axis == axis; }))
      coordinate.push_back({axis, topology_.coordinate_of(rank, axis)});
  coordinate.insert(coordinate.end(), elsewhere.begin(), elsewhere.end());
  return topology_.rank_at(coordinate);
}

int Grid::model_parallel_rank(int rank) const {
  const std::vector<int> replica = topology_.ranks_at("data", data_index_of(rank));
  return static_cast<int>(std::lower_bound(replica.begin(), replica.end(), rank) - replica.begin());
}

RankGroups Grid::model_groups() const {
  if (has_axis(topology_, "model"))
    return topology_.groups_along("model");
  RankGroups alone;
  for (int rank = 0; rank < topology_.rank_count(); ++rank)
    alone.push_back({rank});
  return alone;
}

RankGroups Grid::replica_groups() const {
  RankGroups replicas(static_cast<std::size_t>(data_size()));
  for (int rank = 0; rank < topology_.rank_count(); ++rank)
    replicas[static_cast<std::size_t>(data_index_of(rank))].push_back(rank);
  return replicas;
}

RankGroups Grid::p2p_groups() const {
  RankGroups pairs;
  for (int rank = 0; rank < topology_.rank_count(); ++rank)
    pairs.push_back({rank, stage_to_global(rank, (stage_of(rank) + 1) % pipe_size())});
  return pairs;
}

RankGroups Grid::groups_in_creation_order() const {
  RankGroups all;
  for (const RankGroups& groups : {replica_groups(), data_groups(), pipe_groups(), model_groups()})
    all.insert(all.end(), groups.begin(), groups.end());
  return all;
}

bool is_grid(const Topology& topology) {
  return has_axis(topology, "pipe") && has_axis(topology, "data");
}

Topology default_grid_topology(int ranks) {
  if (ranks < 1)
    throw InputError(fmt::format("a grid of {} ranks asked for, the least is 1", ranks));
  int pipe = 1, data = 1;
  bool to_pipe = true;
  for (const int prime : prime_factors(ranks)) {
    (to_pipe ? pipe : data) *= prime;
    to_pipe = !to_pipe;
  }
  return pipe_data_topology(pipe, data);
}

}  // namespace pipewright::plan
