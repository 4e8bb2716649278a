#include "pipewright/exec/transport/rank_group.hpp"

#include <ATen/ATen.h>

#include <thread>

#include "pipewright/exec/transport/in_process_transport.hpp"
#include "pipewright/plan/cluster/grid.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace rank_group_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::error_of;

/// Runs `work` for each rank, on a thread each, and returns the results.
template <class Work>
std::vector<std::vector<double>> on_ranks(int ranks, const Work& work) {
  const auto transport = make_in_process_transport(ranks);
  std::vector<std::vector<double>> made(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      for (const at::Tensor& tensor : work(rank, *transport))
        made[static_cast<std::size_t>(rank)].push_back(tensor.sum().template item<double>());
    });
  for (std::thread& thread : threads)
    thread.join();
  return made;
}

using Made = std::vector<std::vector<double>>;

TEST_CASE("Ranks of a grid's groups gather, sum and broadcast", "[exec][transport]") {
  const plan::Grid grid(plan::pipe_data_topology(2, 3));  // data: 0 1 2 | 3 4 5
  const auto value = [](int rank) { return Tensors{at::full({2}, rank + 1.0)}; };
  CHECK(on_ranks(6, [&](int rank, Transport& transport) {
          return group_of(grid.data_groups(), rank, transport).sum(value(rank));
        }) == Made{{12}, {12}, {12}, {30}, {30}, {30}});
  CHECK(on_ranks(6, [&](int rank, Transport& transport) {
          return group_of(grid.pipe_groups(), rank, transport).broadcast(value(rank), 1);
        }) == Made{{8}, {10}, {12}, {8}, {10}, {12}});
  CHECK(on_ranks(6, [&](int rank, Transport& transport) {
          Tensors all;
          for (const Tensors& theirs :
               group_of(grid.data_groups(), rank, transport).all_gather(value(rank)))
            all.push_back(theirs.at(0));
          return all;
        }) == Made{{2, 4, 6}, {2, 4, 6}, {2, 4, 6}, {8, 10, 12}, {8, 10, 12}, {8, 10, 12}});
  // A group of one needs no other rank.
  CHECK(on_ranks(2, [&](int rank, Transport& transport) {
          return group_of({{0}, {1}}, rank, transport).sum(value(rank));
        }) == Made{{2}, {4}});
}

TEST_CASE("A rank finds its group and its place in it", "[exec][transport]") {
  const auto transport = make_in_process_transport(6);
  const RankGroup own = group_of({{0, 3}, {5, 1}}, 5, *transport);
  CHECK(own.ranks == std::vector<int>{1, 5});
  CHECK(own.index() == 1);
  CHECK(own.size() == 2);
  CHECK(error_of([&] {
          group_of({{0, 3}, {5, 1}}, 2, *transport);
        }) == "rank 2 is in none of 2 groups");
}

}  // namespace rank_group_test
