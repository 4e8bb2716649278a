#include "pipewright/profiler/links/link_bench.hpp"

#include <ATen/Parallel.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

#include "pipewright/exec/transport/in_process_transport.hpp"
#include "pipewright/plan/error.hpp"
#include "support/catch.hpp"

namespace link_bench_test {

using namespace pipewright;
using namespace pipewright::profiler;

using Answer = std::optional<plan::LinkSamples>;

const LinkRanks four{{{0, 1}, {2, 3}}, {0, 1, 2, 3}};

/// A transport with two cables for all ranks, one for sends of even ranks and one for those of odd
/// ranks. Each carries one tensor at a time.
class TwoCables : public exec::Transport {
 public:
  static constexpr double seconds_per_byte = 2e-5;

  void send(const exec::Transfer& transfer, exec::Tensors tensors) override {
    inner_->send(transfer, std::move(tensors));
  }
  exec::Tensors receive(const exec::Transfer& transfer) override {
    exec::Tensors tensors = inner_->receive(transfer);
    const std::lock_guard carried(cables_[transfer.from % 2]);
    const auto bytes = static_cast<double>(tensors.at(0).nbytes());
    std::this_thread::sleep_for(std::chrono::duration<double>(bytes * seconds_per_byte));
    return tensors;
  }
  std::vector<exec::Tensors> all_to_all(const std::vector<int>& group, int rank,
                                        const std::vector<exec::Tensors>& parts,
                                        exec::Lane lane) override {
    return inner_->all_to_all(group, rank, parts, lane);
  }
  void abort(const std::string& why) override { inner_->abort(why); }

 private:
  std::unique_ptr<exec::Transport> inner_ = exec::make_in_process_transport(4);
  std::array<std::mutex, 2> cables_;
};

/// Returns the results of four threads.
std::vector<Answer> on_four_threads(exec::Transport& transport, const LinkLimits& limits,
                                    const LinkProgress& progress = {},
                                    const std::atomic<bool>* stop = nullptr) {
  std::vector<Answer> answers(4);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      answers[static_cast<std::size_t>(rank)] =
          measure_links({transport, rank, 4}, four, limits, progress, stop);
    });
  for (std::thread& thread : threads)
    thread.join();
  return answers;
}

std::vector<Answer> on_four_threads(const LinkLimits& limits, const LinkProgress& progress = {},
                                    const std::atomic<bool>* stop = nullptr) {
  const auto transport = exec::make_in_process_transport(4);
  return on_four_threads(*transport, limits, progress, stop);
}

std::vector<std::int64_t> sizes_of(const plan::LinkSeries& series) {
  std::vector<std::int64_t> sizes;
  for (const plan::LinkSample& sample : series.samples)
    sizes.push_back(sample.size.value);
  return sizes;
}

TEST_CASE("All sizes are measured: one way, both ways, pairs at once, and sums",
          "[profiler][links]") {
  const auto answers = on_four_threads({.largest = {1024}, .within = {20}});
  REQUIRE(answers[0]);
  const plan::LinkSamples& found = *answers[0];
  CHECK(sizes_of(found.one_way) ==
        std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024});
  CHECK(sizes_of(found.both_ways) == std::vector<std::int64_t>{1, 4, 16, 64, 256, 1024});
  REQUIRE(found.at_once.size() == 1);
  CHECK(sizes_of(found.at_once[0]) == sizes_of(found.both_ways));
  REQUIRE(found.sums.size() == 3);
  REQUIRE(found.tensor_parallel_sums.size() == 3);
  for (const auto* const all : {&found.sums, &found.tensor_parallel_sums})
    for (const plan::LinkSeries& sums : *all)
      CHECK(sizes_of(sums) == std::vector<std::int64_t>{64, 256, 1024});
  CHECK(sizes_of(found.tensor_parallel_sums_during_compute) ==
        sizes_of(found.tensor_parallel_sums[0]));
  for (const plan::LinkSample& sample : found.one_way.samples) {
    CHECK(sample.time > plan::Seconds{0});
    CHECK(sample.repeats > 1);
  }
  CHECK(found.one_way.ended.empty());
}

TEST_CASE(
    "Pairs at once send in the same direction, and take the sum of their times if they alternate",
    "[profiler][links]") {
  TwoCables cables;
  const auto answers = on_four_threads(cables, {.largest = {1024}, .within = {3}});
  REQUIRE(answers[0]);
  const plan::LinkSample& alone = answers[0]->one_way.samples.at(10);
  const plan::LinkSample& two = answers[0]->at_once.at(0).samples.at(5);
  REQUIRE(alone.size == two.size);
  // A sleep is never too short; the time of an answer is subtracted.
  const double sent = 1024 * TwoCables::seconds_per_byte;
  CHECK(alone.time.value >= sent);
  CHECK(two.time.value > 1.8 * sent);
}

TEST_CASE("Every rank has the same result", "[profiler][links]") {
  const auto answers = on_four_threads({.largest = {64}, .within = {20}});
  for (const Answer& answer : answers)
    CHECK(answer == answers[0]);
}

TEST_CASE("Sizes stop growing when time is short, and the reason is given", "[profiler][links]") {
  const auto answers = on_four_threads({.largest = {1024}, .within = {0}});
  REQUIRE(answers[0]);
  CHECK(sizes_of(answers[0]->one_way) == std::vector<std::int64_t>{1, 2, 4});
  CHECK(answers[0]->one_way.ended == "8 bytes would have taken longer than the remaining 0.0 s");
}

TEST_CASE("Stopping the leader ends the measurement on all ranks", "[profiler][links]") {
  std::atomic<bool> stop{false};
  const auto answers = on_four_threads(
      {.largest = {1024}, .within = {20}},
      [&](const char*, plan::Bytes size) { stop = size == plan::Bytes{16}; }, &stop);
  for (const Answer& answer : answers)
    CHECK_FALSE(answer);
}

TEST_CASE("A rank that ends makes the others end", "[profiler][links]") {
  const auto transport = exec::make_in_process_transport(4);
  std::thread other([&] { transport->abort("rank 1 has ended"); });
  CHECK_THROWS_WITH(measure_links({*transport, 0, 4}, four, {}), "rank 1 has ended");
  other.join();
}

}  // namespace link_bench_test
