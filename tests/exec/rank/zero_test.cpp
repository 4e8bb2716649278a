// ZeRO stages 2 and 3: the state of a stage is sharded among its replicas, and training has the
// bits of serial training.

#include <memory>

#include "exec/support/equals_serial.hpp"
#include "exec/support/sample_schedules.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/program/gradient_groups.hpp"
#include "support/temp_folder.hpp"

namespace zero_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::check_equals_serial;
using test::error_of;
using test::make;
using test::partition_for;
using test::small_setup;

/// Returns one unidirectional schedule of each kind. zbv and the last one make gradients of
/// microbatches out of order.
std::vector<plan::Schedule> schedules() {
  std::vector<plan::Schedule> all;
  for (const plan::Schedule& s : test::schedules())
    if (!plan::placement_of(s).is_bidirectional())
      all.push_back(s);
  all.push_back(plan::parse_csv("0F0,0F1,0F2,0I0,0I1,0I2,0W2,0W0,0W1\n", "s.csv"));
  return all;
}

TEST_CASE("Sharded gradients and parameters have the bits of serial training", "[exec][zero]") {
  int tried = 0;
  for (const plan::Schedule& s : schedules())
    for (const int replicas : {2, 3})
      for (const auto& [zero, whole] : {std::pair{2, 3}, {3, 1}, {3, 2}, {3, 3}}) {
        INFO(plan::to_string(s) << replicas << " replicas, ZeRO " << zero << ", whole " << whole);
        check_equals_serial(
            plan::lower(s, {.replicas = replicas, .zero = zero, .whole_stages = whole}),
            partition_for(s), small_setup(), {.replicas = replicas});
        ++tried;
      }
  CHECK(tried == 56);
}

TEST_CASE("ZeRO with 16 bits, other optimizers and recomputation", "[exec][zero]") {
  for (const int zero : {2, 3})
    for (const auto kind : {plan::Optimizer::AdamW, plan::Optimizer::SgdMomentum})
      for (const auto recompute : {plan::RecomputeMode::None, plan::RecomputeMode::Full}) {
        auto setup = small_setup();
        setup.precision = at::kBFloat16;
        setup.optimizer.kind = kind;
        for (const auto& s : {make("zb-h1", 3, 4), make("looped-bfs", 2, 4, 3)})
          check_equals_serial(
              plan::lower(s,
                          {.replicas = 2, .recompute = recompute, .zero = zero, .whole_stages = 1}),
              partition_for(s), setup, {.replicas = 2});
      }
}

TEST_CASE("Gathers and frees as in torch's files train, with one pipeline and with several",
          "[exec][zero]") {
  const auto s = make("interleaved-1f1b", 2, 4, 3);
  check_equals_serial(
      plan::with_slots(plan::with_optimizer_steps(plan::with_loads(
          plan::with_transfers(plan::with_unshards(plan::from_schedule(s, {}), 1))))),
      partition_for(s), small_setup());
  auto program = plan::lower(s, {.replicas = 2});
  for (auto& instructions : program.ranks)
    for (const int stage : {0, 1, 2, 3, 4, 5}) {
      const auto of_stage = [&](const plan::Instruction& i) { return i.stage == stage; };
      if (std::none_of(instructions.begin(), instructions.end(), of_stage))
        continue;
      instructions.insert(instructions.begin(), {plan::InstructionKind::Unshard, stage});
      instructions.push_back({plan::InstructionKind::Reshard, stage});
    }
  check_equals_serial(program, partition_for(s), small_setup(), {.replicas = 2});
}

TEST_CASE("An evaluation gathers what the training has sharded", "[exec][zero]") {
  const test::SyntheticTokens data;
  const auto s = make("1f1b", 2, 2);
  const auto program = plan::lower(s, {.replicas = 2, .zero = 3});
  Executor executor(program, partition_for(s), small_setup(), {.replicas = 2});
  SerialTrainer serial(small_setup(), 4, gradient_groups(program, small_setup(), 2));
  const auto inference = make("inference", 2, 3);
  CHECK(error_of([&] { executor.evaluate(plan::lower(inference), data, 0); }) ==
        "the evaluation and the training gather the parameters of different stages. Lower both "
        "with the same ZeRO stage and number of replicas");
  const auto gathering = plan::lower(inference, {.replicas = 2, .zero = 3, .share_loss = true});
  for (int step = 0; step < 2; ++step) {
    CHECK(executor.step(step).value().loss == serial.step(step).loss);
    CHECK(executor.evaluate(gathering, data, step + 7).value().loss ==
          serial.evaluate(data, 6, step + 7).loss);
  }
}

TEST_CASE("A checkpoint of one ZeRO stage is loaded under any other", "[exec][zero]") {
  const auto s = make("zb-h1", 2, 2);
  const auto executor_with = [&](int zero) {
    return std::make_unique<Executor>(plan::lower(s, {.replicas = 2, .zero = zero}),
                                      partition_for(s), small_setup(),
                                      ExecutorOptions{.replicas = 2});
  };
  for (const int from : {1, 2, 3}) {
    const test::TempFolder folder;
    const auto trained = executor_with(from);
    trained->step(0);
    {
      CheckpointWriter writer(folder.path(), {});
      writer.save(trained->snapshot(1));
      writer.wait();
      CHECK(writer.failure().value_or("") == "");
    }
    const Checkpoint stored =
        open_newest(folder.path(), [](const std::string& message) { FAIL_CHECK(message); });
    for (const int to : {0, 1, 2, 3}) {
      CAPTURE(from, to);
      const auto resumed = executor_with(to);
      resumed->restore(stored);
      const auto wanted = trained->parameters(), loaded = resumed->parameters();
      REQUIRE(wanted.size() == loaded.size());
      for (std::size_t p = 0; p < wanted.size(); ++p)
        CHECK(test::same_bits(wanted[p], loaded[p]));
    }
    // Training continues with the same bits.
    const auto resumed = executor_with(from), taking = executor_with(from);
    resumed->restore(stored);
    taking->take_over(*resumed);
    for (Executor* const next : {trained.get(), resumed.get(), taking.get()})
      next->step(1);
    const auto wanted = trained->parameters();
    for (const Executor* const next : {resumed.get(), taking.get()}) {
      const auto found = next->parameters();
      for (std::size_t p = 0; p < wanted.size(); ++p)
        CHECK(test::same_bits(wanted[p], found[p]));
    }
  }
}

TEST_CASE("A round is a microbatch of every pipeline", "[exec][zero]") {
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

/// Returns the bytes that a rank holds after a step, and the peak within the step.
std::pair<std::int64_t, std::int64_t> held(int zero) {
  std::int64_t standing = 0, peak = 0;
  const auto s = make("1f1b", 1, 4);
  Executor executor(plan::lower(s, {.replicas = 4, .zero = zero}), partition_for(s), small_setup(),
                    {.observer =
                         [&](const InstructionRecord& record) {
                           if (record.rank != 0)
                             return;
                           if (to_string(record.instruction) == "0STEP")
                             standing = record.held_after.value;
                           peak = std::max(peak, record.peak.value);
                         },
                     .replicas = 4});
  executor.step(0);
  peak = 0;
  executor.step(1);
  return {standing, peak};
}

TEST_CASE("Three quarters of the sharded state are on other ranks, and are gathered for use",
          "[exec][zero]") {
  double all = 0;  // bytes of the parameters, which are also those of the gradients
  for (const auto& parameter : SerialTrainer(small_setup(), 1).parameters())
    all += static_cast<double>(parameter.nbytes());
  const auto [whole, most] = held(1);
  const auto [shards, most_of_shards] = held(2);
  CHECK(static_cast<double>(whole - shards) == Approx(0.75 * all).epsilon(0.02));
  // ZeRO 2 also holds one whole gradient at the peak.
  CHECK(static_cast<double>(most_of_shards - most) == Approx(0.25 * all).epsilon(0.02));
  const auto [less, most_of_less] = held(3);
  CHECK(static_cast<double>(shards - less) == Approx(0.75 * all).epsilon(0.02));
  // ZeRO 3 also holds the stage's whole parameters at the peak.
  CHECK(static_cast<double>(most_of_less - most_of_shards) == Approx(0.25 * all).epsilon(0.02));
}

std::string refused(const plan::Program& program, const TrainingSetup& setup,
                    ExecutorOptions options = {}) {
  options.replicas = 2;
  return error_of([&] {
    Executor(program, test::small_partition(plan::stage_count(program)), setup, options);
  });
}

TEST_CASE("Features that sharded gradients do not support are rejected at the start",
          "[exec][zero]") {
  const auto program = plan::lower(make("1f1b", 2, 2), {.replicas = 2, .zero = 2});
  CHECK(
      refused(program, small_setup(), {.cuda_graphs = true})
          .starts_with("training.cuda_graphs: ZeRO stages 2 and 3 free a microbatch's gradients"));
  auto setup = small_setup();
  setup.clip_norm = 1;
  CHECK(refused(program, setup).starts_with("gradients are clipped or scaled, but the program"));
  setup = small_setup();
  setup.layers.front().tied_key = setup.layers.back().tied_key = "words";
  CHECK(refused(plan::lower(make("1f1b", 1, 2), {.replicas = 2, .zero = 2}), setup)
            .ends_with("the program reduce-scatters gradients among replicas. Lower the schedule "
                       "with ZeRO stage 1"));
  auto without = program;
  for (auto& instructions : without.ranks)
    std::erase_if(instructions, [](const plan::Instruction& i) {
      return i.kind == plan::InstructionKind::GatherParameters;
    });
  CHECK(refused(without, small_setup())
            .starts_with("the program reduce-scatters the gradients of stage 0, but"));
}

}  // namespace zero_test
