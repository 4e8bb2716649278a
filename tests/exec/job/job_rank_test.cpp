#include "pipewright/exec/job/job_rank.hpp"

#include <algorithm>

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace job_rank_test {

using namespace pipewright::exec;
using Axes = std::vector<std::string>;
using Ranks = std::vector<int>;

TEST_CASE("A job's rank follows the topology, in any order of the axes", "[exec]") {
  Axes axes{"data", "pipe", "tensor"};
  int orders = 0;
  do {
    ++orders;
    const JobGrid grid(2, 3, 4, axes);
    CHECK(grid.size() == 24);
    for (int rank = 0; rank < grid.size(); ++rank) {
      const JobRank own = grid.rank(rank);
      CHECK(own.rank == grid.topology().coordinate_of(rank, "pipe"));
      CHECK(own.replica == grid.topology().coordinate_of(rank, "data"));
      CHECK(own.shard == grid.topology().coordinate_of(rank, "tensor"));
      CHECK(own.replicas == 3);
      CHECK(own.shards == 4);
      CHECK(own.in_job() == rank);
      CHECK(own.of_all_shards() ==
            grid.topology().ranks_where({{"pipe", own.rank}, {"data", own.replica}}));
      CHECK(own.of_all_replicas({own.rank}) ==
            grid.topology().ranks_where({{"pipe", own.rank}, {"tensor", own.shard}}));
      CHECK(own.of_same_shard() == grid.topology().ranks_at("tensor", own.shard));
      CHECK(own.of(1) ==
            grid.topology()
                .ranks_where({{"pipe", 1}, {"data", own.replica}, {"tensor", own.shard}})
                .front());
    }
    CHECK(grid.first_pipeline() == grid.topology().ranks_where({{"data", 0}, {"tensor", 0}}));
  } while (std::next_permutation(axes.begin(), axes.end()));
  CHECK(orders == 6);
}

TEST_CASE("Consecutive pipelines form expert-parallel groups, whose experts repeat", "[exec]") {
  const JobGrid grid(2, 4, 1, {"pipe", "data", "tensor"}, 2);
  const JobRank own = grid.rank(7);  // in the last pipeline
  CHECK(own.part_of_experts() == 1);
  CHECK(own.of_all_experts() == Ranks{6, 7});
  CHECK(own.of_same_experts({1}) == Ranks{5, 7});
  CHECK(own.of_same_experts({0, 1}) == Ranks{1, 3, 5, 7});
  CHECK(JobGrid(2, 4, 1, {"data", "pipe"}, 2).rank(7).of_all_experts() == Ranks{5, 7});
}

TEST_CASE("Missing axes have length 1, and axes that a job needs are required", "[exec]") {
  CHECK(JobGrid(2, 1, 1, {"context", "pipe", "expert"}).rank(1).rank == 1);
  CHECK(JobGrid(2, 2, 1, {"pipe", "data", "context", "tensor"}).rank(3).of_same_shard() ==
        Ranks{0, 1, 2, 3});
  CHECK(pipewright::test::error_of([] {
          JobGrid(2, 2, 2, {"pipe", "data"});
        }) ==
        "the axes pipe, data omit an axis that has several ranks: pipe has 2, data 2, tensor 2");
}

}  // namespace job_rank_test
