// Tests the predicted sequence of tensor allocations of the executor against the real one.

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "loop/torch/support/verified_plans.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/models/allocator/instruction_tapes.hpp"
#include "pipewright/plan/costs/stage_costs.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/schedules/schedule.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "support/catch.hpp"
#include "support/make_schedule.hpp"

namespace executor_stream_test {

using namespace pipewright;
using models::TensorStream;
using Order = std::vector<models::InstructionTapes::PlacedInstruction>;

constexpr int steps = 2;
constexpr int layers = 4;

/// Returns a scenario with tensors below and above 1 MiB, where the allocator's pool of small
/// blocks ends.
plan::Scenario scenario() {
  plan::Scenario scenario = test::odd_scenario();
  scenario.model =
      plan::GptShape{.blocks = 2, .hidden = 264, .heads = 4, .sequence = 16, .vocabulary = 256};
  scenario.training.microbatch_size = 2;
  return scenario;
}

/// The allocations and instructions of a rank, from the first parameter on.
struct RankStream {
  TensorStream set_up, steps;
  std::vector<models::RecordedInstruction> instructions{};  // of the training steps
};

/// Records the allocations of all ranks of an executor.
class Follower {
 public:
  explicit Follower(std::size_t ranks) : ranks_(ranks) {}

  void allocated(int rank, const exec::AllocationEvent& event) {
    const std::lock_guard lock(mutex_);
    Rank& own = ranks_[static_cast<std::size_t>(rank)];
    if (event.bytes > 0)
      own.held[event.data] = own.made++;
    const int tensor = own.held.at(event.data);
    own.events.push_back({tensor, event.bytes});
    if (event.bytes < 0)
      own.held.erase(event.data);
  }

  void ended(const exec::InstructionRecord& record) {
    const std::lock_guard lock(mutex_);
    Rank& own = ranks_[static_cast<std::size_t>(record.rank)];
    append(own.stream.steps, own.events);
    own.stream.instructions.push_back({step_, record.instruction, std::exchange(own.events, {})});
  }

  void begin_step(int step) {
    step_ = step;
    if (step > 0)
      return;
    for (Rank& own : ranks_) {
      own.made = 0;
      own.stream.set_up = std::exchange(own.events, {});
    }
  }

  std::vector<RankStream> take() {
    std::vector<RankStream> streams;
    for (Rank& own : ranks_) {
      append(own.stream.steps, own.events);
      streams.push_back(std::move(own.stream));
    }
    return streams;
  }

  static void append(TensorStream& stream, const TensorStream& more) {
    stream.insert(stream.end(), more.begin(), more.end());
  }

 private:
  struct Rank {
    std::map<const void*, int> held{};
    int made = -1'000'000;  // static tensors get numbers below zero
    TensorStream events{};  // since the last instruction
    RankStream stream{};
  };
  std::mutex mutex_;
  std::vector<Rank> ranks_;
  int step_ = 0;
};

/// Returns the order in which the simulator starts the instructions if all stages take the same
/// time.
Order in_order(const plan::Program& program, int stages) {
  sim::StepCosts costs;
  plan::StageCost cost{};
  cost.forward = cost.input_gradient = cost.weight_gradient = {1};
  costs.stages.assign(static_cast<std::size_t>(stages), cost);
  const sim::Structure structure(program);
  sim::Simulator simulator(structure);
  const sim::Times& times = simulator.run(costs);
  std::vector<std::pair<double, Order::value_type>> begun;
  for (int event = 0; event < structure.size(); ++event)
    begun.push_back({times[event].start,
                     {structure.events()[event].rank, *structure.events()[event].instruction}});
  std::stable_sort(begun.begin(), begun.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Order placed;
  for (const auto& [time, own] : begun)
    if (!is_send(own.instruction.kind) && !is_receive(own.instruction.kind))
      placed.push_back(own);
  return placed;
}

/// Makes the ranks take turns in a fixed order of their instructions, so that no result depends on
/// when another rank releases a tensor.
class Turns {
 public:
  explicit Turns(const Order& order) : size_(order.size()) {
    for (std::size_t at = 0; at < order.size(); ++at)
      place_[key_of(order[at].instruction)] = at;
  }
  void await(const plan::Instruction& i) {
    const auto place = place_.find(key_of(i));
    if (place == place_.end())
      return;
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return now_ % size_ == place->second; });
  }
  void end(const plan::Instruction& i) {
    if (!place_.contains(key_of(i)))
      return;
    const std::lock_guard lock(mutex_);
    ++now_;
    wake_.notify_all();
  }

 private:
  std::size_t size_;
  std::map<plan::InstructionKey, std::size_t> place_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::size_t now_ = 0;
};

std::vector<RankStream> run(const plan::Program& program, const plan::Partition& partition) {
  static const loop::Workload workload(scenario());
  Follower follower(program.ranks.size());
  Turns turns(in_order(program, plan::stage_count(partition)));
  exec::Executor executor(
      program, partition, workload.setup(),
      {.observer =
           [&](const exec::InstructionRecord& record) {
             follower.ended(record);
             turns.end(record.instruction);
           },
       .starting = [&](const plan::Instruction& i) { turns.await(i); },
       .allocations =
           [&](int rank, const exec::AllocationEvent& event) { follower.allocated(rank, event); }});
  for (int step = 0; step < steps; ++step) {
    follower.begin_step(step);
    executor.step(step, {.continues = step + 1 < steps});
  }
  return follower.take();
}

/// Returns the actions of a microbatch stage by stage, or from the last stage on.
std::string forwards(int stages, int microbatch) {
  std::string actions;
  for (int stage = 0; stage < stages; ++stage)
    actions += fmt::format("{}F{},", stage, microbatch);
  return actions;
}
std::string backwards(int stages, std::string_view kinds, int microbatch) {
  std::string actions;
  for (int stage = stages; stage-- > 0;)
    for (const char kind : kinds)
      actions += fmt::format("{}{}{},", stage, kind, microbatch);
  return actions;
}

plan::Program program_of(std::string actions, plan::RecomputeMode recompute) {
  if (actions.back() == ',')
    actions.pop_back();
  return plan::lower(plan::parse_csv(actions + "\n", "s.csv"), {.recompute = recompute});
}

/// Returns the tapes of one rank that has all stages and runs one microbatch after the other.
models::InstructionTapes whole_backwards(const plan::Partition& partition,
                                         plan::RecomputeMode recompute) {
  const int stages = plan::stage_count(partition);
  const std::string actions = forwards(stages, 0) + backwards(stages, "B", 0) +
                              forwards(stages, 1) + backwards(stages, "B", 1);
  models::InstructionTapes tapes;
  tapes.learn(run(program_of(actions, recompute), partition).front().instructions);
  return tapes;
}

/// Returns the tapes with W after its I, after all of them, and with a later microbatch first.
models::InstructionTapes split_backwards(const plan::Partition& partition,
                                         plan::RecomputeMode recompute) {
  const int stages = plan::stage_count(partition);
  const auto both = [&](std::string_view kinds, int first) {
    return backwards(stages, kinds, first) + backwards(stages, kinds, 1 - first);
  };
  models::InstructionTapes tapes;
  for (const std::string& behind :
       {both("IW", 0), both("I", 0) + both("W", 0), both("I", 0) + both("W", 1)}) {
    const std::string actions = forwards(stages, 0) + forwards(stages, 1) + behind;
    tapes.learn(run(program_of(actions, recompute), partition).front().instructions);
  }
  return tapes;
}

std::string first_difference(const TensorStream& real, const TensorStream& predicted) {
  const auto [own, other] =
      std::mismatch(real.begin(), real.end(), predicted.begin(), predicted.end());
  if (own == real.end() && other == predicted.end())
    return {};
  const auto words = [](const TensorStream& stream, auto at) {
    return at == stream.end() ? std::string("nothing")
                              : fmt::format("tensor {}: {} bytes", at->tensor, at->bytes);
  };
  return fmt::format("event {} of {}: {}; predicted, of {}: {}", own - real.begin(), real.size(),
                     words(real, own), predicted.size(), words(predicted, other));
}

void check_streams(const plan::Program& program, const plan::Partition& partition,
                   const models::InstructionTapes& tapes) {
  const std::vector<RankStream> real = run(program, partition);
  const auto predicted = tapes.streams_of(in_order(program, plan::stage_count(partition)), steps);
  REQUIRE(predicted.size() == real.size());
  for (std::size_t rank = 0; rank < real.size(); ++rank) {
    CAPTURE(rank);
    CHECK(real[rank].steps.size() > 500);
    CHECK(first_difference(real[rank].steps, predicted[rank]) == "");
    TensorStream all = real[rank].set_up, all_predicted = all;
    Follower::append(all, real[rank].steps);
    Follower::append(all_predicted, predicted[rank]);
    const auto held = models::counters_of(all), foretold = models::counters_of(all_predicted);
    CHECK(held.peak_reserved == foretold.peak_reserved);
    CHECK(held.reserved == foretold.reserved);
    CHECK(held.peak_allocated == foretold.peak_allocated);
    CHECK(held.peak_reserved > held.peak_allocated);
  }
}

TEST_CASE("A rank's allocations are predicted tensor by tensor for any order",
          "[loop][memory][allocator]") {
  const plan::Partition partition{{0, 1, 3, layers}};
  const auto check = [&](plan::RecomputeMode recompute, const char* actions) {
    CAPTURE(actions, to_string(recompute));
    check_streams(program_of(actions, recompute), partition, whole_backwards(partition, recompute));
  };
  check(plan::RecomputeMode::None,
        "0F0,1F0,2F0,0F1,2B0,1F1,1B0,2F1,0B0,2B1,1B1,0B1,0F2,1F2,2F2,2B2,1B2,0B2");
  check(plan::RecomputeMode::Full, "0F0,1F0,2F0,0F1,1F1,2F1,2B0,1B0,0B0,2B1,1B1,0B1");
}

TEST_CASE("A rank's allocations are predicted with split backwards", "[loop][memory][allocator]") {
  const plan::Partition partition{{0, 1, 3, layers}};
  const auto check = [&](plan::RecomputeMode recompute, const char* actions) {
    CAPTURE(actions, to_string(recompute));
    check_streams(program_of(actions, recompute), partition, split_backwards(partition, recompute));
  };
  check(plan::RecomputeMode::None,
        "0F0,0F1,1F0,2F0,2I0,1F1,1I0,2F1,2W0,0I0,0W0,1W0,2I1,1I1,0I1,2W1,0W1,1W1");
  check(plan::RecomputeMode::Full,
        "0F0,1F0,2F0,2I0,2W0,1I0,0I0,1W0,0W0,0F1,1F1,2F1,2I1,1I1,1W1,2W1,0I1,0W1");
}

TEST_CASE("The allocations of all ranks are predicted tensor by tensor for schedules",
          "[loop][memory][allocator]") {
  const plan::Partition two{{0, 2, layers}}, four{{0, 1, 2, 3, layers}};
  constexpr auto none = plan::RecomputeMode::None;
  const auto whole = whole_backwards(two, none);
  for (const char* name : {"gpipe", "1f1b"}) {
    CAPTURE(name);
    check_streams(plan::lower(test::make(name, 2, 4), {}), two, whole);
  }
  check_streams(plan::lower(test::make("interleaved-1f1b", 2, 4, 2), {}), four,
                whole_backwards(four, none));
}

TEST_CASE("The allocations of all ranks are predicted for schedules with split backwards",
          "[loop][memory][allocator]") {
  const plan::Partition two{{0, 2, layers}}, four{{0, 1, 2, 3, layers}};
  constexpr auto none = plan::RecomputeMode::None;
  check_streams(plan::lower(test::make("zbv", 2, 4), {}), four, split_backwards(four, none));
  // Its last rank runs the first microbatch's W at the end, so the gradients before it are set
  // aside.
  check_streams(plan::lower(test::make("zb-h1", 2, 4), {}), two, split_backwards(two, none));
}

}  // namespace executor_stream_test
