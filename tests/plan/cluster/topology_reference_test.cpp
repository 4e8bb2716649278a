// Compares our answers with those of DeepSpeed's ProcessTopology and PipelineParallelGrid, field by
// field.

#include <algorithm>

#include "pipewright/plan/cluster/grid.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/reference.hpp"

namespace topology_reference_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

Topology topology_of(const Json& known) {
  return {known["axes"].get<std::vector<std::string>>(), known["dims"].get<std::vector<int>>()};
}

/// Requires `ours(case)` to equal every case in all fields except the `apart` ones. Reports how
/// many matched.
template <class Ours>
void compare_cases(const std::string& name, const std::vector<std::string>& apart,
                   const Ours& ours) {
  const Json cases = pipewright::test::reference_cases("topology/" + name);
  std::size_t equal = 0;
  for (const Json& known : cases) {
    Json expected = known;
    for (const std::string& field : apart)
      expected.erase(field);
    const Json answer = ours(known);
    CAPTURE(known["axes"].dump(), known["dims"].dump());
    CHECK(answer.size() == expected.size());
    bool all_fields = answer.size() == expected.size();
    for (const auto& [field, value] : expected.items()) {
      CAPTURE(field);
      CHECK(answer.value(field, Json()) == value);
      all_fields = all_fields && answer.value(field, Json()) == value;
    }
    equal += all_fields ? 1 : 0;
  }
  pipewright::test::report_equal(name, equal, cases.size());
}

Json topology_answers(const Json& known) {
  const Topology topology = topology_of(known);
  Json answer{{"axes", topology.axes()},
              {"dims", topology.lengths()},
              {"world_size", topology.rank_count()}};
  for (int rank = 0; rank < topology.rank_count(); ++rank) {
    answer["coord_of_rank"].push_back(topology.coordinate_of(rank));
    answer["rank_repr"].push_back(topology.repr_of(rank));
    answer["rank_repr_omit_none"].push_back(topology.repr_of(rank, {}));
    CHECK(topology.rank_of(topology.coordinate_of(rank)) == rank);
  }
  for (const std::string& axis : topology.axes()) {
    answer["axis_comm_lists"][axis] = topology.groups_along(axis);
    for (int index = 0; index < topology.length_of(axis); ++index)
      answer["axis_list"][axis].push_back(topology.ranks_at(axis, index));
  }
  for (const Json& match : known["filter_match"]) {
    std::vector<AxisIndex> conditions;
    for (const auto& [axis, index] : match["where"].items())
      conditions.push_back({axis, index});
    answer["filter_match"].push_back(
        {{"where", match["where"]}, {"ranks", topology.ranks_where(conditions)}});
  }
  return answer;
}

std::vector<int> group_of(int rank, const RankGroups& groups) {
  for (const std::vector<int>& group : groups)
    if (std::find(group.begin(), group.end(), rank) != group.end())
      return group;
  return {};
}

Json rank_answers(const Grid& grid, int rank) {
  const auto replica = group_of(rank, grid.replica_groups());
  Json answer{{"rank", rank},
              {"stage_id", grid.stage_of(rank)},
              {"data_parallel_id", grid.data_index_of(rank)},
              {"is_first_stage", grid.is_first_stage(rank)},
              {"is_last_stage", grid.is_last_stage(rank)},
              {"dp_group", group_of(rank, grid.data_groups())},
              {"pp_group", group_of(rank, grid.pipe_groups())},
              {"slice_group", group_of(rank, grid.model_groups())},
              {"ds_model_rank", std::find(replica.begin(), replica.end(), rank) - replica.begin()},
              {"ds_model_world_size", replica.size()},
              {"slice_parallel_rank", grid.model_index_of(rank)}};
  for (int stage = 0; stage < grid.pipe_size(); ++stage)
    answer["stage_to_global"].push_back(grid.stage_to_global(rank, stage));
  return answer;
}

Json grid_answers(const Json& known) {
  const int ranks = known["world_size"];
  const bool given = known["given_topology"];
  const Grid grid(given ? topology_of(known) : default_grid_topology(ranks));
  Json answer{{"world_size", grid.topology().rank_count()},
              {"axes", grid.topology().axes()},
              {"dims", grid.topology().lengths()},
              {"data_parallel_size", grid.data_size()},
              {"pipe_parallel_size", grid.pipe_size()},
              {"model_parallel_size", grid.model_size()},
              {"p2p_groups", grid.p2p_groups()},
              {"dp_groups", grid.data_groups()},
              {"pp_groups", grid.pipe_groups()},
              // DeepSpeed has no list of these if every rank is alone.
              {"mp_groups", grid.model_size() == 1 ? Json() : Json(grid.model_groups())},
              {"ds_model_groups", grid.replica_groups()},
              {"groups_in_creation_order", grid.groups_in_creation_order()}};
  for (int rank = 0; rank < ranks; ++rank)
    answer["per_rank"].push_back(rank_answers(grid, rank));
  return answer;
}

TEST_CASE("A topology gives the answers of DeepSpeed's ProcessTopology",
          "[plan][topology][reference]") {
  compare_cases("process_topology.json",
                {"peer", "peer_version", "axis_comm_lists_of_unknown_axis", "dim_of_unknown_axis"},
                topology_answers);
}

TEST_CASE("A grid gives the answers of DeepSpeed's PipelineParallelGrid",
          "[plan][topology][reference]") {
  compare_cases("pipeline_parallel_grid.json", {"peer", "peer_version", "given_topology"},
                grid_answers);
}

TEST_CASE("An unknown axis is rejected where DeepSpeed returns nothing",
          "[plan][topology][reference]") {
  for (const Json& known : pipewright::test::reference_cases("topology/process_topology.json")) {
    const Topology topology = topology_of(known);
    REQUIRE(known["axis_comm_lists_of_unknown_axis"].empty());
    REQUIRE(known["dim_of_unknown_axis"] == 0);
    CHECK(error_of([&] { topology.groups_along("nowhere"); }).find("no axis is called") == 0);
    CHECK(error_of([&] { topology.length_of("nowhere"); }).find("no axis is called") == 0);
  }
}

}  // namespace topology_reference_test
