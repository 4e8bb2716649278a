#include "pipewright/plan/cluster/grid.hpp"

#include <limits>

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace grid_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

TEST_CASE("A grid has two stages and three pipelines", "[plan][grid]") {
  const Grid grid(pipe_data_topology(2, 3));
  CHECK(grid.pipe_groups() == RankGroups{{0, 3}, {1, 4}, {2, 5}});
  CHECK(grid.data_groups() == RankGroups{{0, 1, 2}, {3, 4, 5}});
  CHECK(grid.replica_groups() == RankGroups{{0, 3}, {1, 4}, {2, 5}});
  CHECK(grid.p2p_groups() == RankGroups{{0, 3}, {1, 4}, {2, 5}, {3, 0}, {4, 1}, {5, 2}});
  CHECK(grid.stage_of(4) == 1);
  CHECK(grid.data_index_of(4) == 1);
  CHECK(grid.is_first_stage(2));
  CHECK(grid.is_last_stage(3));
  CHECK_FALSE(grid.is_last_stage(2));
}

TEST_CASE("A rank finds the other stages of its own pipeline and tensor-parallel index",
          "[plan][grid]") {
  const Grid grid(pipe_data_model_topology(3, 2, 2));
  CHECK(grid.stage_to_global(7, 0) == 3);  // 7 is pipe 1, data 1, model 1
  CHECK(grid.stage_to_global(7, 1) == 7);
  CHECK(grid.stage_to_global(7, 2) == 11);
  CHECK(error_of([&] { grid.stage_to_global(7, 3); }) ==
        "pipe 3 does not exist: the axis has 0 to 2");
}

TEST_CASE("A rank finds stages of other pipelines and tensor-parallel indices by name",
          "[plan][grid]") {
  const Grid grid(pipe_data_model_topology(3, 2, 2));
  CHECK(grid.stage_to_global(7, 0, {{"data", 0}}) == 1);
  CHECK(grid.stage_to_global(7, 2, {{"model", 0}, {"data", 0}}) == 8);
  CHECK(error_of([&] {
          grid.stage_to_global(7, 0, {{"tensor", 0}});
        }) == "no axis is called \"tensor\" (known: pipe, data or model)");
  CHECK(error_of([&] {
          grid.stage_to_global(7, 0, {{"pipe", 0}});
        }) == "the axis \"pipe\" occurs twice in a coordinate");
}

TEST_CASE("A rank knows its index among the ranks that hold one replica", "[plan][grid]") {
  const Grid grid(pipe_data_model_topology(2, 2, 2));
  CHECK(grid.replica_groups() == RankGroups{{0, 1, 4, 5}, {2, 3, 6, 7}});
  CHECK(grid.model_parallel_size() == 4);
  CHECK(grid.model_parallel_rank(5) == 3);
  CHECK(grid.model_parallel_rank(2) == 0);
  CHECK(Grid(pipe_data_topology(3, 2)).model_parallel_size() == 3);
  CHECK(Grid(pipe_data_topology(3, 2)).model_parallel_rank(4) == 2);
}

TEST_CASE("With an axis model, stages have tensor-parallel groups; without it, every rank is alone",
          "[plan][grid]") {
  const Grid sliced(pipe_data_model_topology(2, 1, 2));
  CHECK(sliced.model_size() == 2);
  CHECK(sliced.model_index_of(3) == 1);
  CHECK(sliced.model_groups() == RankGroups{{0, 1}, {2, 3}});
  CHECK(sliced.replica_groups() == RankGroups{{0, 1, 2, 3}});
  const Grid whole(pipe_data_topology(2, 1));
  CHECK(whole.model_size() == 1);
  CHECK(whole.model_index_of(1) == 0);
  CHECK(whole.model_groups() == RankGroups{{0}, {1}});
}

TEST_CASE("Groups are created replicas first, then data, pipe and model", "[plan][grid]") {
  CHECK(Grid(pipe_data_topology(1, 2)).groups_in_creation_order() ==
        RankGroups{{0}, {1}, {0, 1}, {0}, {1}, {0}, {1}});
}

TEST_CASE("A grid needs pipe and data, in any order and with any other axes", "[plan][grid]") {
  CHECK(is_grid(Topology({"data", "expert", "pipe"}, {2, 2, 2})));
  CHECK_FALSE(is_grid(Topology({"pipe", "model"}, {2, 2})));
  CHECK(error_of([] {
          Grid(Topology({"pipe", "model"}, {2, 2}));
        }) == "a grid needs the axes pipe and data, but data is missing");
  CHECK(error_of([] { Grid(Topology({"data"}, {2})); }) ==
        "a grid needs the axes pipe and data, but pipe is missing");
}

TEST_CASE("The default grid assigns prime factors to pipe and data in turn", "[plan][grid]") {
  CHECK(default_grid_topology(1) == pipe_data_topology(1, 1));
  CHECK(default_grid_topology(7) == pipe_data_topology(7, 1));
  CHECK(default_grid_topology(24) == pipe_data_topology(4, 6));
  CHECK(default_grid_topology(60) == pipe_data_topology(6, 10));
  const int prime = std::numeric_limits<int>::max();
  CHECK(default_grid_topology(prime) == pipe_data_topology(prime, 1));
  CHECK(error_of([] { default_grid_topology(0); }) ==
        "a grid of 0 ranks asked for, the least is 1");
}

}  // namespace grid_test
