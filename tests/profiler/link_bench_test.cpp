#include "pipewright/profiler/link_bench.hpp"

#include <ATen/Parallel.h>

#include <functional>
#include <thread>

#include "pipewright/exec/transport/in_process_transport.hpp"
#include "pipewright/plan/error.hpp"
#include "support/catch.hpp"

namespace link_bench_test {

using namespace pipewright;
using namespace pipewright::profiler;

using Answer = std::optional<plan::LinkSamples>;

const LinkRanks four{{{0, 1}, {2, 3}}, {0, 1, 2, 3}};

/// What each of four threads answers.
std::vector<Answer> on_four_threads(const LinkLimits& limits, const LinkProgress& progress = {},
                                    const std::atomic<bool>* stop = nullptr) {
  const auto transport = exec::make_in_process_transport(4);
  std::vector<Answer> answers(4);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      answers[static_cast<std::size_t>(rank)] =
          measure_links({*transport, rank, 4}, four, limits, progress, stop);
    });
  for (std::thread& thread : threads)
    thread.join();
  return answers;
}

std::vector<std::int64_t> sizes_of(const plan::LinkSeries& series) {
  std::vector<std::int64_t> sizes;
  for (const plan::LinkSample& sample : series.samples)
    sizes.push_back(sample.size.value);
  return sizes;
}

TEST_CASE("All sizes are measured: one way, both ways, by pairs at once, and as sums",
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
  for (const plan::LinkSeries& sums : found.sums)
    CHECK(sizes_of(sums) == std::vector<std::int64_t>{64, 256, 1024});
  for (const plan::LinkSample& sample : found.one_way.samples) {
    CHECK(sample.time > plan::Seconds{0});
    CHECK(sample.repeats > 1);
  }
  CHECK(found.one_way.ended.empty());
}

TEST_CASE("Every rank has the same answer", "[profiler][links]") {
  const auto answers = on_four_threads({.largest = {64}, .within = {20}});
  for (const Answer& answer : answers)
    CHECK(answer == answers[0]);
}

TEST_CASE("Sizes stop growing where time is short, and it is said why", "[profiler][links]") {
  const auto answers = on_four_threads({.largest = {1024}, .within = {0}});
  REQUIRE(answers[0]);
  CHECK(sizes_of(answers[0]->one_way) == std::vector<std::int64_t>{1, 2, 4});
  CHECK(answers[0]->one_way.ended == "8 bytes would take more than the 0.0 s that were left");
}

TEST_CASE("A leader that is stopped ends it on all ranks", "[profiler][links]") {
  std::atomic<bool> stop{false};
  const auto answers = on_four_threads(
      {.largest = {1024}, .within = {20}},
      [&](const char*, plan::Bytes size) { stop = size == plan::Bytes{16}; }, &stop);
  for (const Answer& answer : answers)
    CHECK_FALSE(answer);
}

TEST_CASE("A rank that ends, ends the others", "[profiler][links]") {
  const auto transport = exec::make_in_process_transport(4);
  std::thread other([&] { transport->abort("rank 1 has ended"); });
  CHECK_THROWS_WITH(measure_links({*transport, 0, 4}, four, {}), "rank 1 has ended");
  other.join();
}

}  // namespace link_bench_test
