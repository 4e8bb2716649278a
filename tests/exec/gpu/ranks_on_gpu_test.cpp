// Differences between ranks on a GPU and ranks on the CPU, and what must be the same.

#include <sched.h>

#include <atomic>

#include "exec/support/equals_serial.hpp"
#include "exec/support/sample_schedules.hpp"
#include "exec/support/small_alexnet.hpp"
#include "support/skip.hpp"

namespace ranks_on_gpu_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::make;
using test::partition_for;
using test::small_setup;

void need_gpu() {
  if (gpus().names.empty())
    test::skip("no GPU: " + gpus().why_none);
}

TEST_CASE("AlexNet trains on a GPU with the bits of serial training there, also when captured",
          "[cuda][alexnet]") {
  need_gpu();
  for (const bool graphs : {false, true})
    test::check_equals_serial(plan::lower(make("zb-h1", 2, 4)), test::small_alexnet_partition,
                              test::small_alexnet(),
                              {.cuda_graphs = graphs, .devices = on_gpus(2)});
}

int allowed_cores() {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
}

TEST_CASE("A rank on a GPU may use all cores of its process", "[cuda]") {
  need_gpu();
  std::atomic<int> least = allowed_cores();
  std::atomic<int> told = 0;
  const auto s = make("1f1b", 2, 4);
  Executor executor(plan::lower(s), partition_for(s), small_setup(),
                    {.starting =
                         [&](const plan::Instruction&) {  // on the rank's thread
                           least = std::min(least.load(), allowed_cores());
                           ++told;
                         },
                     .devices = on_gpus(2)});
  executor.step(0);
  CHECK(told > 0);
  CHECK(least == allowed_cores());
}

/// Returns how much more a rank holds at the end of the third step than at that of the first, which
/// captures nothing yet.
double set_aside(std::vector<RankDevice> devices) {
  const auto s = make("gpipe", 2, 4);
  std::atomic<std::int64_t> held = 0;
  // No tensor is so small that the allocator of a GPU rounds it up by much.
  auto setup = small_setup();
  setup.layers =
      engine::gpt_layers({.blocks = 4, .hidden = 128, .heads = 2, .sequence = 8, .vocabulary = 32});
  Executor executor(plan::lower(s), partition_for(s), setup,
                    {.observer =
                         [&](const InstructionRecord& record) {
                           if (record.rank == 0)
                             held = record.held_after.value;
                         },
                     .cuda_graphs = true,
                     .devices = std::move(devices)});
  executor.step(0);
  const std::int64_t before = held;
  executor.step(1);
  executor.step(2);
  return static_cast<double>(held - before);
}

TEST_CASE("Memory that graphs retain on a GPU equals the charge for captured work on the CPU",
          "[cuda]") {
  need_gpu();
  const double on_cpu = set_aside({});
  CHECK(on_cpu > 1e6);
  // If a stand-in computes on the CPU, its own results are charged to the rank, too: 12 % here.
  CHECK(set_aside(on_gpus(2)) == Approx(on_cpu).epsilon(0.15));
}

}  // namespace ranks_on_gpu_test
