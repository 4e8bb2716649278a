// Expert parallelism: data-parallel pipelines that partition their experts, combined with other
// kinds of parallelism. Training has the bits of serial training for any number of expert-parallel
// ranks, and any number can load its checkpoints.

#include <ATen/ATen.h>

#include "exec/support/checkpoints.hpp"
#include "exec/support/equals_serial.hpp"
#include "exec/support/sample_schedules.hpp"
#include "exec/support/sharded_gpt.hpp"
#include "exec/support/small_transformers.hpp"
#include "exec/support/thread_shards.hpp"
#include "models/token_exchange.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "support/temp_folder.hpp"

namespace expert_parallel_test {

using namespace pipewright;
using namespace pipewright::engine;
using namespace pipewright::exec;
using test::check_equals_serial;
using test::make;
using test::partition_for;

/// Returns a model with four experts in each layer but the first.
plan::TransformerShape shape() {
  plan::TransformerShape shape = test::small_mixture();
  shape.config.experts = 4;
  return shape;
}

plan::Program program_of(const test::Sizes& sizes, bool norm = false, int zero = 0) {
  return plan::lower(sizes.schedule, {.replicas = sizes.replicas,
                                      .zero = zero,
                                      .whole_stages = 3,
                                      .gradient_norm = norm,
                                      .share_loss = true});
}

ExecutorOptions options_of(const test::Sizes& sizes, int expert_ranks) {
  ExecutorOptions options = sizes.options();
  options.expert_ranks = expert_ranks;
  return options;
}

TEST_CASE("Expert-parallel ranks have the bits of a rank that has all experts", "[exec]") {
  auto setup = test::small_setup_of(shape());
  setup.clip_norm = 0.5;
  int trained = 0;
  for (const auto& [schedule, replicas] :
       {std::pair{make("1f1b", 1, 2), 4},
        {make("1f1b", 2, 4), 2},
        {make("zbv", 2, 4), 2},
        {make("dualpipev", 2, 4), 2}})  // with interleaved fused pairs
    for (const int expert_ranks : {1, 2, 4}) {
      const test::Sizes sizes{schedule, replicas, 1};
      if (replicas % expert_ranks != 0)
        continue;
      INFO(to_string(sizes) << ", experts on " << expert_ranks);
      check_equals_serial(program_of(sizes, /*norm=*/true), partition_for(schedule), setup,
                          options_of(sizes, expert_ranks), /*steps=*/2);
      ++trained;
    }
  CHECK(trained == 9);
}

TEST_CASE("Expert parallelism: sharded optimizers, with experts sharded among their replicas",
          "[exec]") {
  auto setup = test::small_setup_of(shape());
  setup.clip_norm = 0.5;
  int trained = 0;
  for (const auto& [schedule, replicas] :
       {std::pair{make("1f1b", 1, 2), 4}, {make("zbv", 2, 4), 2}})
    for (const int expert_ranks : {2, 4}) {
      const test::Sizes sizes{schedule, replicas, 1};
      if (replicas % expert_ranks != 0)
        continue;
      INFO(to_string(sizes) << ", experts on " << expert_ranks);
      check_equals_serial(program_of(sizes, /*norm=*/true, /*zero=*/1), partition_for(schedule),
                          setup, options_of(sizes, expert_ranks), /*steps=*/2);
      ++trained;
    }
  CHECK(trained == 3);
}

TEST_CASE("Expert parallelism: microbatches go through each pipeline in two directions", "[exec]") {
  auto setup = test::small_setup_of(shape());
  setup.clip_norm = 0.5;
  int trained = 0;
  for (const auto& [schedule, replicas, zero, groups] :
       {std::tuple{make("dualpipe", 2, 4), 2, 0, 0},  // with interleaved pairs
        {make("dualpipe", 2, 4), 4, 1, 0},
        {make("chimera", 2, 4), 2, 1, 8}})
    for (const int expert_ranks : {2, 4}) {
      const test::Sizes sizes{schedule, replicas, 1};
      if (replicas % expert_ranks != 0)
        continue;
      INFO(to_string(sizes) << ", experts on " << expert_ranks << ", ZeRO " << zero);
      setup.gradient_groups = groups;
      check_equals_serial(program_of(sizes, /*norm=*/true, zero), partition_for(schedule), setup,
                          options_of(sizes, expert_ranks), /*steps=*/2);
      ++trained;
    }
  CHECK(trained == 4);
}

TEST_CASE("Expert parallelism: 16 bits with a loss scale and sharded optimizers", "[exec]") {
  auto setup = test::small_setup_of(shape());
  setup.precision = at::kBFloat16;
  setup.optimizer.fp32_gradients = true;
  setup.loss_scaling = {.scale = 1024, .dynamic = true};
  const test::Sizes sizes{make("1f1b", 1, 2), 4, 1};
  check_equals_serial(program_of(sizes, /*norm=*/true, /*zero=*/1), partition_for(sizes.schedule),
                      setup, options_of(sizes, 2), /*steps=*/2);
}

TEST_CASE("Expert parallelism: tensor parallelism partitions the width of each expert", "[exec]") {
  for (const auto& [schedule, shards, zero, tokens] :
       {std::tuple{make("1f1b", 1, 4), 1, 0, Tokens::Whole},
        {make("1f1b", 1, 4), 2, 0, Tokens::Cut},
        {make("1f1b", 2, 4), 2, 1, Tokens::Whole},
        {make("dualpipev", 2, 4), 2, 0, Tokens::Whole}}) {  // interleaves at both kinds
    const test::Sizes sizes{schedule, 2, shards};
    INFO(to_string(sizes) << ", ZeRO " << zero);
    auto setup = test::small_setup_of(shape(), /*groups=*/2, tokens);
    setup.clip_norm = 0.5;
    check_equals_serial(program_of(sizes, /*norm=*/true, zero), partition_for(schedule), setup,
                        options_of(sizes, 2), /*steps=*/2);
  }
}

TEST_CASE("Expert parallelism: sharded gradients and parameters", "[exec]") {
  int trained = 0;
  for (const auto& [schedule, replicas, shards, zero, precision] :
       {std::tuple{make("1f1b", 1, 2), 4, 1, 2, at::kFloat},
        {make("1f1b", 1, 2), 4, 1, 3, at::kFloat},
        {make("zbv", 2, 4), 2, 1, 3, at::kBFloat16},
        {make("1f1b", 1, 2), 2, 2, 3, at::kFloat}})
    for (const int expert_ranks : {2, 4}) {
      const test::Sizes sizes{schedule, replicas, shards};
      if (replicas % expert_ranks != 0)
        continue;
      INFO(to_string(sizes) << ", experts on " << expert_ranks << ", ZeRO " << zero);
      auto setup = test::small_setup_of(shape(), /*groups=*/shards);
      setup.clip_norm = 0.5;
      setup.precision = precision;
      setup.optimizer.fp32_gradients = precision != at::kFloat;
      check_equals_serial(program_of(sizes, /*norm=*/true, zero), partition_for(schedule), setup,
                          options_of(sizes, expert_ranks), /*steps=*/2);
      ++trained;
    }
  CHECK(trained == 6);
}

TEST_CASE("Expert parallelism: 16 bits, with biases, recomputation and several groups", "[exec]") {
  plan::TransformerShape biased = test::small_biased_mixture();
  biased.config.experts = 4;
  auto setup = test::small_setup_of(biased, /*groups=*/2);
  setup.precision = at::kBFloat16;
  setup.optimizer.fp32_gradients = true;
  setup.gradient_groups = 4;
  for (const int shards : {1, 2}) {
    const test::Sizes sizes{make("1f1b", 1, 4), 2, shards};
    INFO(to_string(sizes));
    const auto program = plan::lower(
        sizes.schedule,
        {.replicas = sizes.replicas, .recompute = plan::RecomputeMode::Full, .share_loss = true});
    check_equals_serial(program, partition_for(sizes.schedule), setup, options_of(sizes, 2),
                        /*steps=*/2);
  }
}

/// Checks that a step from this checkpoint gives these bits.
void check_continues(const Checkpoint& checkpoint, const TrainingSetup& setup,
                     const test::Sizes& sizes, int expert_ranks, int zero,
                     const std::vector<at::Tensor>& expected) {
  INFO("goes on with " << to_string(sizes) << ", experts on " << expert_ranks << ", ZeRO " << zero);
  Executor next(program_of(sizes, /*norm=*/false, zero), partition_for(sizes.schedule), setup,
                options_of(sizes, expert_ranks));
  next.restore(checkpoint);
  next.step(1);
  const auto found = next.parameters();
  REQUIRE(found.size() == expected.size());
  for (std::size_t p = 0; p < found.size(); ++p)
    CHECK(test::same_bits(found[p], expected[p]));
}

TEST_CASE("A checkpoint with experts resumes with any number of expert- and tensor-parallel ranks",
          "[exec]") {
  const test::Sizes four{make("1f1b", 1, 2), 4, 1}, cut{make("1f1b", 1, 4), 2, 2};
  auto setup = test::small_setup_of(shape(), /*groups=*/2);
  setup.gradient_groups = 4;
  struct Form {
    test::Sizes sizes;
    int expert_ranks, zero;
  };
  for (const auto& [from, to] : {std::pair{Form{four, 2, 0}, std::vector<Form>{{cut, 2, 1}}},
                                 {Form{four, 2, 1}, {{four, 1, 0}, {four, 4, 1}}},
                                 {Form{cut, 2, 1}, {{cut, 1, 1}, {cut, 2, 0}}},
                                 {Form{four, 2, 3}, {{four, 1, 3}, {four, 4, 2}}}}) {
    INFO("saved by " << to_string(from.sizes) << ", ZeRO " << from.zero);
    const test::TempFolder folder;
    Executor first(program_of(from.sizes, /*norm=*/false, from.zero),
                   partition_for(from.sizes.schedule), setup,
                   options_of(from.sizes, from.expert_ranks));
    first.step(0);
    CheckpointWriter writer(folder.path(), {});
    CHECK(test::save(writer, first.snapshot(1)).empty());
    first.step(1);
    const auto expected = first.parameters();
    const Checkpoint checkpoint =
        open_newest(folder.path(), [](const std::string& message) { FAIL_CHECK(message); });
    for (const Form& next : to)
      check_continues(checkpoint, setup, next.sizes, next.expert_ranks, next.zero, expected);
  }
}

/// Two ranks with two experts each. All tokens of both go to the experts of the first rank.
TEST_CASE("Tokens go to their experts' ranks and back, also if a rank gets none", "[exec]") {
  struct Seen {
    std::vector<Counts> counts;
    at::Tensor there, back, gradient;
  };
  const auto seen = test::run_shards(2, 1, [](const TensorParallelPlace& place) {
    const int own = place.index;
    const Counts counts = own == 0 ? Counts{1, 2, 0, 0} : Counts{0, 1, 0, 0};
    const at::Tensor rows =
        (at::arange(own == 0 ? 3 : 1, at::kFloat).view({-1, 1}) + 10 * own).requires_grad_();
    const TokenExchange exchange({own, 2, place.group}, counts, at::kCPU);
    const at::Tensor there = exchange.go(rows);
    const at::Tensor back = exchange.come_back(there * 2);
    back.backward(rows.detach() + 1);
    return Seen{exchange.counts_here(), there.detach(), back.detach(), rows.grad()};
  });
  CHECK(seen[0].counts == std::vector<Counts>{{1, 2}, {0, 1}});
  CHECK(seen[1].counts == std::vector<Counts>{{0, 0}, {0, 0}});
  CHECK(at::equal(seen[0].there.flatten(), at::tensor({0.0F, 1.0F, 2.0F, 10.0F})));
  CHECK(seen[1].there.sizes() == at::IntArrayRef{0, 1});
  CHECK(at::equal(seen[0].back.flatten(), at::tensor({0.0F, 2.0F, 4.0F})));
  CHECK(at::equal(seen[1].back.flatten(), at::tensor({20.0F})));
  CHECK(at::equal(seen[0].gradient.flatten(), at::tensor({2.0F, 4.0F, 6.0F})));
  CHECK(at::equal(seen[1].gradient.flatten(), at::tensor({22.0F})));
}

TEST_CASE("Ranks with one expert each get few tokens or none, with the same bits", "[exec]") {
  plan::TransformerShape one = shape();
  one.config.experts_per_token = 1;
  one.config.hidden = 4;  // few tokens that differ little
  const test::Sizes sizes{make("1f1b", 1, 2), 4, 1};
  check_equals_serial(program_of(sizes), partition_for(sizes.schedule), test::small_setup_of(one),
                      options_of(sizes, 4), /*steps=*/2);
}

TEST_CASE("Training that expert-parallel ranks do not support is rejected", "[exec]") {
  const auto refusal = [](const test::Sizes& sizes, const TrainingSetup& setup, int expert_ranks) {
    return test::error_of([&] {
      Executor(program_of(sizes), partition_for(sizes.schedule), setup,
               options_of(sizes, expert_ranks));
    });
  };
  const auto mixture = test::small_setup_of(shape());
  const test::Sizes two{make("1f1b", 2, 4), 2, 1};
  CHECK(refusal(two, mixture, 3) ==
        "2 pipelines cannot be divided into expert-parallel groups of 3 (pipeline.expert)");
  CHECK(refusal(two, test::small_setup_of(test::small_llama()), 2) ==
        "pipeline.expert: experts cannot be divided among ranks, because no layer has any");
  const auto without_flush = plan::lower(make("pipedream", 2, 4), {.step_every = 1});
  CHECK(test::error_of([&] { require_trainable(without_flush, 2); }) ==
        "pipeline.expert: without a flush only one pipeline trains, so experts cannot be divided "
        "among pipelines. Use a schedule with a flush");
  CHECK(refusal({make("1f1b", 1, 4), 8, 1}, mixture, 8) ==
        "pipeline.expert: 8 ranks cannot partition 4 experts evenly");
}

}  // namespace expert_parallel_test
