// Ranks that read their microbatches ahead, compared with ranks that read at their LOADs.

#include <algorithm>
#include <chrono>
#include <map>
#include <semaphore>
#include <thread>

#include "exec/support/equals_serial.hpp"
#include "exec/support/sample_schedules.hpp"
#include "pipewright/plan/generators/evaluation_program.hpp"

namespace reading_ranks_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::check_equals_serial;
using test::make;
using test::partition_for;
using test::schedules;
using test::small_setup;

/// Microbatches with different weights, so that mixed-up weights show.
class WeightedTokens : public Dataset {
 public:
  at::Tensor input(int step, int microbatch) const override {
    return tokens_.input(step, microbatch);
  }
  at::Tensor target(int step, int microbatch) const override {
    return tokens_.target(step, microbatch);
  }
  double weight(int step, int microbatch) const override {
    return (step + microbatch) % 2 == 0 ? 0.5 : 1.5;
  }

 private:
  test::SyntheticTokens tokens_;
};

TEST_CASE("Read-ahead gives the same bits under every schedule", "[exec]") {
  const WeightedTokens data;
  auto setup = small_setup();
  setup.data = &data;
  for (const auto& s : schedules())
    for (const int ahead : {1, 2, 20}) {
      INFO(plan::to_string(s) << ahead);
      for (const int replicas : {1, 2})
        check_equals_serial(plan::lower(s, {.replicas = replicas}), partition_for(s), setup,
                            {.read_ahead = ahead, .replicas = replicas});
    }
}

/// Records, by thread, which inputs are read.
class NotedTokens final : public WeightedTokens {
 public:
  at::Tensor input(int step, int microbatch) const override {
    {
      const std::lock_guard lock(mutex_);
      by_thread[std::this_thread::get_id()].emplace_back(step, microbatch);
    }
    begun.release();
    return WeightedTokens::input(step, microbatch);
  }
  mutable std::map<std::thread::id, std::vector<std::pair<int, int>>> by_thread;
  mutable std::counting_semaphore<> begun{0};

 private:
  mutable std::mutex mutex_;
};

TEST_CASE("Each rank reads only its own microbatches, in the order of its list, into the next step",
          "[exec]") {
  const NotedTokens data;
  auto setup = small_setup();
  setup.data = &data;
  const auto s = make("1f1b", 2, 4);
  Executor executor(plan::lower(s, {.replicas = 2}), partition_for(s), setup,
                    {.read_ahead = 2, .replicas = 2});
  executor.step(5, {.continues = true});
  for (int read = 0; read < 2 * (4 + 2); ++read)  // two first ranks, each 2 ahead
    REQUIRE(data.begun.try_acquire_for(std::chrono::minutes(1)));
  executor.step(6);
  REQUIRE(data.by_thread.size() == 2);
  std::vector<int> first;
  for (const auto& [thread, read] : data.by_thread) {
    first.push_back(read.front().second);
    REQUIRE(read.size() == 8);  // nothing is read twice, and nothing of step 7
    for (int i = 0; i < 8; ++i)
      CHECK(read[static_cast<std::size_t>(i)] == std::pair(5 + i / 4, first.back() + i % 4));
  }
  std::sort(first.begin(), first.end());
  CHECK(first == std::vector{0, 4});
}

TEST_CASE("An evaluation reads its own data, and the training continues with its own", "[exec]") {
  const WeightedTokens data;
  const test::SyntheticTokens others;
  auto setup = small_setup();
  setup.data = &data;
  for (const auto& s : schedules()) {
    const auto program = plan::lower(s);
    const auto inference = plan::evaluation_program(program, 4, 1);
    Executor executor(program, partition_for(s), setup, {.read_ahead = 2});
    SerialTrainer serial(setup, program.microbatches, gradient_groups(program, setup, 1));
    for (int step = 0; step < 3; ++step) {
      CHECK(executor.step(step, {.continues = true}).value().loss == serial.step(step).loss);
      const auto seen = executor.evaluate(inference, others, step).value();
      CHECK(seen.loss == serial.evaluate(others, 4, step).loss);
    }
  }
}

/// A file that ends too early.
class Truncated final : public WeightedTokens {
 public:
  at::Tensor input(int step, int microbatch) const override {
    if (step == 1 && microbatch == 2)
      throw std::runtime_error("tokens.bin: it ends within microbatch 2");
    return WeightedTokens::input(step, microbatch);
  }
};

TEST_CASE(
    "An exception of a read is reported where the microbatch is loaded, with the same message",
    "[exec]") {
  const Truncated data;
  auto setup = small_setup();
  setup.data = &data;
  for (const int ahead : {0, 1, 8}) {
    Executor executor(plan::lower(plan::make_1f1b(3, 4)), test::small_partition(3), setup,
                      {.read_ahead = ahead});
    REQUIRE(executor.step(0, {.continues = true}));  // although it has been read by now
    CHECK_THROWS_WITH(executor.step(1),
                      "rank 0, action 0LOAD2, step 1: tokens.bin: it ends within microbatch 2");
  }
}

TEST_CASE("Data read ahead is held by a rank from its LOAD on", "[exec]") {
  std::map<int, std::vector<std::int64_t>> held;  // by number of microbatches read ahead
  for (const int ahead : {0, 3}) {
    const auto s = make("gpipe", 1, 4);
    Executor executor(plan::lower(s), partition_for(s), small_setup(),
                      {.observer =
                           [&](const InstructionRecord& record) {
                             held[ahead].push_back(record.held_before.value);
                             held[ahead].push_back(record.held_after.value);
                           },
                       .read_ahead = ahead});
    executor.step(0, {.continues = true});
    executor.step(1);
  }
  CHECK(held[0] == held[3]);
}

}  // namespace reading_ranks_test
