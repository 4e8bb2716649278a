#include "pipewright/plan/cluster/topology.hpp"

#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace topology_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

TEST_CASE("With pipe 2 and data 4, rank 5 is pipe 1, data 1", "[plan][topology]") {
  const Topology topology({"pipe", "data"}, {2, 4});
  CHECK(topology.rank_count() == 8);
  CHECK(topology.length_of("data") == 4);
  CHECK(topology.coordinate_of(5) == std::vector<int>{1, 1});
  CHECK(topology.coordinate_of(5, "pipe") == 1);
  CHECK(topology.rank_of({1, 1}) == 5);
}

TEST_CASE("A rank is found by the names of its axes, in any order", "[plan][topology]") {
  const Topology topology({"pipe", "data"}, {2, 4});
  for (int rank = 0; rank < 8; ++rank) {
    const auto coordinate = topology.coordinate_of(rank);
    CHECK(topology.rank_at({{"data", coordinate[1]}, {"pipe", coordinate[0]}}) == rank);
  }
  CHECK(topology.find_length("data") == 4);
  CHECK(topology.find_length("tensor") == 0);
  CHECK(error_of([&] {
          topology.rank_at({{"pipe", 1}});
        }) == "the coordinate has no index of the axis \"data\" (needed: pipe or data)");
  CHECK(error_of([&] {
          topology.rank_at({{"pipe", 1}, {"pipe", 1}});
        }) == "the axis \"pipe\" occurs twice in a coordinate");
  CHECK(error_of([&] {
          topology.rank_at({{"pipe", 1}, {"data", 4}});
        }) == "data 4 does not exist: the axis has 0 to 3");
  CHECK(error_of([&] {
          topology.rank_at({{"pipe", 1}, {"tensor", 0}});
        }) == "no axis is called \"tensor\" (known: pipe or data)");
}

TEST_CASE("A group holds the ranks that differ only along its axis", "[plan][topology]") {
  const Topology topology({"pipe", "data"}, {2, 3});
  CHECK(topology.groups_along("pipe") == std::vector<std::vector<int>>{{0, 3}, {1, 4}, {2, 5}});
  CHECK(topology.groups_along("data") == std::vector<std::vector<int>>{{0, 1, 2}, {3, 4, 5}});
}

TEST_CASE("Ranks are found by some of their indices", "[plan][topology]") {
  const Topology topology({"pipe", "data", "model"}, {2, 2, 2});
  CHECK(topology.ranks_where({{"pipe", 0}, {"data", 1}}) == std::vector<int>{2, 3});
  CHECK(topology.ranks_where({}) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(topology.ranks_where({{"model", 2}}).empty());
  CHECK(topology.ranks_where({{"pipe", 0}, {"pipe", 1}}).empty());
  CHECK(topology.ranks_at("model", 1) == std::vector<int>{1, 3, 5, 7});
}

TEST_CASE("A rank's name has two digits per axis and no omitted axis", "[plan][topology]") {
  const Topology topology({"pipe", "model"}, {2, 12});
  CHECK(topology.repr_of(23) == "model_11");
  CHECK(topology.repr_of(23, {}) == "pipe_01-model_11");
  CHECK(topology.repr_of(13, {}, "=", ", ") == "pipe=01, model=01");
  CHECK(topology.repr_of(0, {"pipe", "model"}).empty());
  CHECK(Topology({"data"}, {101}).repr_of(100, {}) == "data_100");
}

TEST_CASE("The last of the usual axes is the fastest", "[plan][topology]") {
  CHECK(pipe_data_topology(2, 4) == Topology({"pipe", "data"}, {2, 4}));
  CHECK(pipe_data_model_topology(2, 4, 3) == Topology({"pipe", "data", "model"}, {2, 4, 3}));
}

TEST_CASE("A product other than the number of ranks is rejected", "[plan][topology]") {
  CHECK_NOTHROW(require_ranks(pipe_data_topology(2, 4), 8));
  CHECK(error_of([] { require_ranks(pipe_data_topology(2, 4), 6); }) ==
        "pipe 2 x data 4 is 8 ranks, but there are 6");
}

TEST_CASE("Impossible topologies are rejected with an error message", "[plan][topology]") {
  const auto make = [](std::vector<std::string> axes, std::vector<int> lengths) {
    return error_of([&] { Topology(std::move(axes), std::move(lengths)); });
  };
  CHECK(make({"pipe", "data"}, {2}) == "2 axes are named, but 1 lengths are given");
  CHECK(make({"pipe", ""}, {2, 2}) == "axis 1 has no name");
  CHECK(make({"pipe", "pipe"}, {2, 2}) == "the axis \"pipe\" occurs twice");
  CHECK(make({"pipe"}, {0}) == "the axis \"pipe\" has the length 0, the least is 1");
  CHECK(make({"a", "b", "c"}, {65536, 65536, 65536}) ==
        "the axes together have more ranks than can be counted");
}

TEST_CASE("Invalid queries of a topology are rejected with an error message", "[plan][topology]") {
  const Topology topology({"pipe", "data"}, {2, 4});
  CHECK(error_of([&] { topology.length_of("date"); }) ==
        "no axis is called \"date\", did you mean \"data\"? (known: pipe or data)");
  CHECK(error_of([&] { topology.groups_along("tensor"); }) ==
        "no axis is called \"tensor\" (known: pipe or data)");
  CHECK(error_of([&] {
          topology.ranks_where({{"pipe", 0}, {"tensor", 0}});
        }) == "no axis is called \"tensor\" (known: pipe or data)");
  CHECK(error_of([&] { topology.repr_of(-1); }) == "there is no rank -1: the 8 ranks are 0 to 7");
  CHECK(error_of([&] { topology.coordinate_of(8); }) ==
        "there is no rank 8: the 8 ranks are 0 to 7");
  CHECK(error_of([&] { topology.rank_of({1}); }) ==
        "a coordinate of 1 numbers is given, but there are 2 axes");
  CHECK(error_of([&] {
          topology.rank_of({1, 4});
        }) == "data 4 does not exist: the axis has 0 to 3");
}

TEST_CASE("A topology reads back as it was written", "[plan][topology]") {
  const Topology topology({"pipe", "data", "tensor"}, {2, 3, 4});
  const auto text = to_json(topology).dump();
  CHECK(topology_from_json(JsonDocument::parse(text, "topology.json")) == topology);
}

TEST_CASE("A topology file's error is reported with its position", "[plan][topology]") {
  const auto read = [](const std::string& text) {
    return error_of([&] { topology_from_json(JsonDocument::parse(text, "t.json")); });
  };
  CHECK(read(R"({"format": "pipewright/topology/1", "axes": ["a", "a"], "lengths": [1, 2]})") ==
        "t.json:1:37: /axes: the axis \"a\" occurs twice");
  CHECK(read(R"({"format": "pipewright/topology/1", "axes": ["a"], "lengths": [0]})") ==
        "t.json:1:64: /lengths/0: 0 is not possible: it must be at least 1");
}

}  // namespace topology_test
