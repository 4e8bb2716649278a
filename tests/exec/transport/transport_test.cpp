#include "pipewright/exec/transport/transport.hpp"

#include <torch/types.h>

#include <thread>

#include "pipewright/exec/transport/in_process_transport.hpp"
#include "support/catch.hpp"

namespace transport_test {

using namespace pipewright;
using namespace pipewright::exec;

/// A transfer between two ranks with one stage each.
Transfer transfer(const char* text) {
  const auto instruction = plan::parse_instruction(text).value();
  const int here = instruction.stage, there = plan::peer_stage(instruction);
  return plan::is_send(instruction.kind) ? Transfer{instruction, here, there}
                                         : Transfer{instruction, there, here};
}

TEST_CASE("In process: tensors are passed by reference", "[exec][transport]") {
  const auto transport = make_in_process_transport(2);
  const at::Tensor tensor = torch::ones({4});
  transport->send(transfer("0SEND_F0"), {tensor});
  CHECK(transport->receive(transfer("1RECV_F0")).at(0).is_same(tensor));
}

TEST_CASE("In process: a receive takes the transfer with its name, whatever was sent first",
          "[exec][transport]") {
  const auto transport = make_in_process_transport(2);
  transport->send(transfer("0SEND_F0"), {torch::full({1}, 10)});
  transport->send(transfer("0SEND_F1"), {torch::full({1}, 11)});
  transport->send(transfer("1SEND_B0"), {torch::full({1}, 20)});
  CHECK(transport->receive(transfer("1RECV_F1")).at(0).item<int>() == 11);
  CHECK(transport->receive(transfer("0RECV_B0")).at(0).item<int>() == 20);
  CHECK(transport->receive(transfer("1RECV_F0")).at(0).item<int>() == 10);
}

TEST_CASE("In process: abort ends a wait that has begun and every later one", "[exec][transport]") {
  const auto transport = make_in_process_transport(2);
  bool aborted = false;
  std::thread waiting([&] {
    try {
      transport->receive(transfer("1RECV_F0"));
    } catch (const Aborted& why) {
      aborted = std::string(why.what()) == "rank 1 is out";
    }
  });
  transport->abort("rank 1 is out");
  waiting.join();
  CHECK(aborted);
  CHECK_THROWS_AS(transport->send(transfer("0SEND_F0"), {}), Aborted);
}

TEST_CASE("In process: an all-gather gives every rank the tensors of all, round after round",
          "[exec][transport]") {
  const auto transport = make_in_process_transport(4);
  const std::vector<int> group{0, 2, 3};
  std::vector<std::vector<std::int64_t>> seen(4);
  std::vector<std::thread> threads;
  for (const int rank : group)
    threads.emplace_back([&, rank] {
      for (int round = 0; round < 200; ++round) {
        std::int64_t sum = 0;
        for (const Tensors& theirs :
             transport->all_gather(group, rank, {torch::full({1}, 10 * rank + round, at::kLong)}))
          sum = 100 * sum + theirs.at(0).item<std::int64_t>() - round;
        seen[static_cast<std::size_t>(rank)].push_back(sum);
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  for (const int rank : group)
    CHECK(seen[static_cast<std::size_t>(rank)] == std::vector<std::int64_t>(200, 2030));
}

TEST_CASE("In process: abort ends an all-gather that waits for a rank", "[exec][transport]") {
  const auto transport = make_in_process_transport(2);
  std::thread waiting([&] { CHECK_THROWS_AS(transport->all_gather({0, 1}, 0, {}), Aborted); });
  transport->abort("rank 1 is out");
  waiting.join();
  CHECK_THROWS_AS(transport->all_gather({0, 1}, 1, {}), Aborted);
}

TEST_CASE("In process: a collective within compute does not queue after one in the background",
          "[exec][transport]") {
  const auto transport = make_in_process_transport(2);
  const std::vector<int> group{0, 1};
  std::vector<std::thread> threads;
  std::vector<std::int64_t> seen(2);
  const auto collect = [&](int rank, Lane lane, std::int64_t number) {
    const at::Tensor own = torch::full({1}, number, at::kLong);
    return transport->all_to_all(group, rank, {{own}, {own}}, lane)
        .at(1)
        .at(0)
        .item<std::int64_t>();
  };
  // Rank 0 calls both at once, rank 1 one after the other and the later one first.
  threads.emplace_back([&] { seen[0] = collect(0, Lane::Beside, 1); });
  threads.emplace_back([&] { seen[1] = collect(0, Lane::Compute, 2); });
  collect(1, Lane::Compute, 20);
  collect(1, Lane::Beside, 10);
  for (std::thread& thread : threads)
    thread.join();
  CHECK(seen == std::vector<std::int64_t>{10, 20});
}

TEST_CASE("In process: a part is passed by reference, and released once all have theirs",
          "[exec][transport]") {
  const auto transport = make_in_process_transport(2);
  const std::vector<int> group{0, 1};
  at::Tensor part = torch::ones({4});
  Tensors got;
  std::thread other([&] {
    got = transport->all_to_all(group, 1, {{torch::ones({1})}, {torch::ones({1})}}, Lane::Compute)
              .at(0);
  });
  transport->all_to_all(group, 0, {{part}, {part}}, Lane::Compute);
  other.join();
  CHECK(got.at(0).is_same(part));
  got.clear();
  CHECK(part.use_count() == 1);
}

}  // namespace transport_test
