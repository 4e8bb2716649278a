// ZeRO from its second stage on: what stands of a stage is divided among its copies, and the bits
// are those of serial training all the same.

#include <fmt/format.h>

#include "exec/support/equals_serial.hpp"
#include "exec/support/sample_schedules.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/program/gradient_groups.hpp"

namespace zero_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::check_equals_serial;
using test::error_of;
using test::make;
using test::partition_for;
using test::small_setup;

/// One of each kind that goes in one direction; zbv and the last one make gradients of microbatches
/// in another order than they come.
std::vector<plan::Schedule> schedules() {
  std::vector<plan::Schedule> all;
  for (const plan::Schedule& s : test::schedules())
    if (!plan::placement_of(s).is_bidirectional())
      all.push_back(s);
  all.push_back(plan::parse_csv("0F0,0F1,0F2,0I0,0I1,0I2,0W2,0W0,0W1\n", "s.csv"));
  return all;
}

TEST_CASE("sharded gradients have the bits of serial training", "[exec][zero]") {
  int tried = 0;
  for (const plan::Schedule& s : schedules())
    for (const int replicas : {2, 3}) {
      INFO(plan::to_string(s) << replicas << " replicas");
      check_equals_serial(plan::lower(s, {.replicas = replicas, .zero = 2}), partition_for(s),
                          small_setup(), {.replicas = replicas});
      ++tried;
    }
  CHECK(tried == 14);
}

TEST_CASE("sharded gradients of 16 bits, of other optimizers and recomputed", "[exec][zero]") {
  for (const auto kind : {plan::Optimizer::AdamW, plan::Optimizer::SgdMomentum})
    for (const auto recompute : {plan::RecomputeMode::None, plan::RecomputeMode::Full}) {
      auto setup = small_setup();
      setup.precision = at::kBFloat16;
      setup.optimizer.kind = kind;
      const auto s = make("zb-h1", 3, 4);
      check_equals_serial(plan::lower(s, {.replicas = 2, .recompute = recompute, .zero = 2}),
                          partition_for(s), setup, {.replicas = 2});
    }
}

TEST_CASE("a round is a microbatch of every pipeline", "[exec][zero]") {
  const auto program = plan::lower(make("1f1b", 2, 3), {.replicas = 2, .zero = 2});
  auto setup = small_setup();
  CHECK(gradient_groups(program, setup, 2) == std::vector{0, 1, 2, 0, 1, 2});
  setup.gradient_groups = 2;
  CHECK(gradient_groups(program, setup, 2) == std::vector{0, 1, 2, 0, 1, 2});
  setup.gradient_groups = 6;
  CHECK(
      error_of([&] { gradient_groups(program, setup, 2); }) ==
      "6 gradient groups under ZeRO stage 2 or 3, where each of the 2 pipelines is one: say 2, or "
      "use stage 1");
}

/// What a rank holds before a step, and the most in it.
std::pair<std::int64_t, std::int64_t> held(int zero) {
  std::int64_t standing = 0, peak = 0;
  const auto s = make("1f1b", 1, 4);
  Executor executor(plan::lower(s, {.replicas = 4, .zero = zero}), partition_for(s), small_setup(),
                    {.observer =
                         [&](const InstructionRecord& record) {
                           if (record.rank != 0)
                             return;
                           if (to_string(record.instruction) == "0LOAD0")
                             standing = record.held_before.value;
                           peak = std::max(peak, record.peak.value);
                         },
                     .replicas = 4});
  executor.step(0);
  peak = 0;
  executor.step(1);
  return {standing, peak};
}

TEST_CASE("three quarters of the gradients stand elsewhere, and come and go", "[exec][zero]") {
  std::int64_t gradients = 0;
  for (const auto& parameter : SerialTrainer(small_setup(), 1).parameters())
    gradients += static_cast<std::int64_t>(parameter.nbytes());
  const auto [whole, most] = held(1);
  const auto [shards, most_of_shards] = held(2);
  CHECK(static_cast<double>(whole - shards) ==
        Approx(0.75 * static_cast<double>(gradients)).epsilon(0.02));
  // One whole gradient beside them.
  CHECK(static_cast<double>(most_of_shards - most) ==
        Approx(0.25 * static_cast<double>(gradients)).epsilon(0.02));
}

std::string refused(const plan::Program& program, const TrainingSetup& setup,
                    ExecutorOptions options = {}) {
  options.replicas = 2;
  return error_of([&] {
    Executor(program, test::small_partition(plan::stage_count(program)), setup, options);
  });
}

TEST_CASE("what does not go with sharded gradients is refused at the start", "[exec][zero]") {
  const auto program = plan::lower(make("1f1b", 2, 2), {.replicas = 2, .zero = 2});
  CHECK(refused(program, small_setup(), {.cuda_graphs = true})
            .starts_with("training.cuda_graphs: the gradients of a microbatch are let go of"));
  auto setup = small_setup();
  setup.clip_norm = 1;
  CHECK(refused(program, setup).starts_with("gradients are clipped or scaled, but the program"));
  setup = small_setup();
  setup.layers.front().tied_key = setup.layers.back().tied_key = "words";
  CHECK(refused(plan::lower(make("1f1b", 1, 2), {.replicas = 2, .zero = 2}), setup)
            .ends_with("the program gives each copy of a stage the sums of its shard alone: lower "
                       "the schedule with ZeRO stage 1"));
  auto without = program;
  for (auto& instructions : without.ranks)
    std::erase_if(instructions, [](const plan::Instruction& i) {
      return i.kind == plan::InstructionKind::GatherParameters;
    });
  CHECK(refused(without, small_setup())
            .starts_with("each copy of stage 0 gets the sums of its shard alone, but"));
}

}  // namespace zero_test
