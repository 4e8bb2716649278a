#include "pipewright/sim/memory/memory.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <sstream>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "pipewright/plan/program/program_counts.hpp"
#include "pipewright/plan/schedules/backward_passes.hpp"
#include "pipewright/plan/schedules/schedule.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "sim/support/equal_ranks.hpp"
#include "sim/support/random_costs.hpp"
#include "sim/support/structures.hpp"

namespace memory_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

StageCost times(double forward, double input_gradient, double weight_gradient) {
  StageCost cost;
  cost.forward = {forward};
  cost.input_gradient = {input_gradient};
  cost.weight_gradient = {weight_gradient};
  return cost;
}

/// Returns links of one second's latency that carry any size at once.
StepCosts costs_of(std::vector<StageCost> stages) {
  StepCosts costs;
  costs.stages = std::move(stages);
  costs.cluster.devices_per_node = 8;
  costs.cluster.within_node = {
      .latency = {1}, .bandwidth_per_s = std::numeric_limits<double>::infinity(), .shared = false};
  return costs;
}

/// A timed Program and its memory.
struct Case {
  Case(const Schedule& schedule, StepCosts costs_, Holding holding_ = {})
      : Case(lower(schedule), std::move(costs_), holding_) {}
  Case(Program program, StepCosts costs_, Holding holding_)
      : costs(std::move(costs_)),
        holding(holding_),
        structure(std::move(program)),
        simulator(structure),
        model(structure, holding),
        times(simulator.run(costs)),
        curves(model.curves(costs, times)) {}

  /// Returns "time: bytes" of each point.
  std::string curve(int rank) const {
    std::ostringstream text;
    for (const MemoryPoint& point : curves.of(rank))
      text << (&point == curves.of(rank).data() ? "" : ", ") << point.time << ": " << point.held;
    return text.str();
  }

  std::string holders(int rank, double time) const {
    std::ostringstream text;
    for (const Holder& holder : model.holders(costs, times, rank, time))
      text << (text.tellp() == 0 ? "" : ", ") << holder.name << ": " << holder.bytes.value;
    return text.str();
  }

  StepCosts costs;
  Holding holding;
  Structure structure;
  Simulator simulator;
  MemoryModel model;
  const Times& times;
  const MemoryCurves& curves;
};

/// Returns two stages of one second per action: activations of 10 and 20, outputs of 4, gradients
/// of 3.
std::vector<StageCost> two_stages() {
  std::vector<StageCost> stages(2, times(1, 1, 1));
  stages[0].activation = {10};
  stages[0].output = {4};
  stages[1].activation = {20};
  stages[1].input_gradient_bytes = {3};
  return stages;
}

TEST_CASE("The workspaces of a device are counted in addition to all other memory",
          "[sim][memory]") {
  StepCosts costs = costs_of(two_stages());
  const Case without(make("1f1b", 2, 2), costs);
  costs.workspaces = {64};
  const Case with(make("1f1b", 2, 2), costs);
  for (std::size_t rank = 0; rank < 2; ++rank)
    CHECK(with.curves.peaks[rank].held - without.curves.peaks[rank].held == Bytes{64});
  CHECK(with.holders(0, 0) == "workspaces of the device: 64, activations 0F0: 10");
}

TEST_CASE("With CUDA graphs each slot keeps its peak, and copies of its inputs",
          "[sim][memory][soak]") {
  auto stages = two_stages();
  stages[0].gradients = {2};
  stages[0].backward_peak_apart = {5};
  for (const auto local_transfer : {TensorTransfer::Reference, TensorTransfer::Copy}) {
    const Case at(make("1f1b", 2, 2), costs_of(stages), {local_transfer, 0, /*captures=*/true});
    // Two slots of 10 + 5 and the received gradient, 3; and one of 20 and the input, 4.
    CHECK(at.holders(0, 0) == "set aside for graphs: 36, gradients: 2");
    CHECK(at.holders(1, 0) == (local_transfer == TensorTransfer::Copy
                                   ? "set aside for graphs: 24, receive buffer 1RECV_F0: 4"
                                   : "set aside for graphs: 24"));
    CHECK(at.curves.peaks[1].held == Bytes{24 + (local_transfer == TensorTransfer::Copy ? 4 : 3)});
  }
}

/// Adds random bytes for everything that `random_costs` leaves out.
StepCosts with_memory(StepCosts costs, std::mt19937& random, bool at_shards = false) {
  const auto bytes = [&](int least, int most) {
    return Bytes{std::uniform_int_distribution(least, most)(random)};
  };
  for (StageCost& stage : costs.stages) {
    stage.parameters = bytes(0, 90);
    stage.gradients = bytes(0, 90);
    if (at_shards)
      stage.parameters_elsewhere =
          stage.parameters - bytes(0, static_cast<int>(stage.parameters.value));
    if (at_shards)
      stage.gradients_elsewhere =
          stage.gradients - bytes(0, static_cast<int>(stage.gradients.value));
    stage.optimizer_state = bytes(0, 90);
    stage.freed_by_input_gradient = bytes(0, 30);
    stage.activation = stage.output + stage.freed_by_input_gradient + bytes(0, 90);
    stage.output_alone = stage.output * static_cast<int>(random() % 2);
    stage.input_for_weights = random() % 2 == 0;
    stage.output_gradient_for_weights = random() % 2 == 0;
    stage.forward_peak = stage.activation + bytes(0, 90);
    stage.backward_peak = bytes(0, 90);
    stage.input_gradient_peak = bytes(0, 90);
    stage.weight_gradient_peak = bytes(0, 90);
    stage.rerun = rerun_at_once(stage);
    stage.rerun.kept = bytes(0, 20);
    stage.rerun.backward_share = stage.rerun.input_gradient_share =
        stage.rerun.weight_gradient_share = std::uniform_real_distribution(0.0, 1.0)(random);
    stage.rerun.left_for_weights = bytes(0, 9);
    stage.gradients_for_weights = bytes(0, 9);
  }
  costs.stages.front().loaded = {7};
  costs.stages.back().loaded += Bytes{5};
  return costs;
}

/// Calls `visit` for Programs of every kind, costs and ways of passing data, so that every pair of
/// them is tested.
template <class Visit>
int for_each_case(const Visit& visit) {
  PairCover cover;
  std::mt19937 random(31);
  int visited = 0;
  for (const std::string& name : schedule_names())
    for (const auto& [ranks, microbatches] : {std::pair{2, 4}, {4, 8}})
      for (const LoweringOptions& options : all_ways_to_communicate())
        for (const Holding holding : {Holding{TensorTransfer::Reference, 0},
                                      {TensorTransfer::Reference, 2},
                                      {TensorTransfer::Reference, 1, /*captures=*/true},
                                      {TensorTransfer::Copy, 0},
                                      {TensorTransfer::Copy, 1},
                                      {TensorTransfer::Copy, 0, /*captures=*/true}})
          for (const bool recompute : {false, true})
            try {
              auto values = values_of(name, ranks, microbatches, options);
              values.push_back(fmt::format("{} {} {}", to_string(holding.local_transfer),
                                           holding.gradient_groups, holding.captures));
              values.push_back(recompute ? "recompute" : "");
              if (!cover.needs(values))
                continue;
              const Schedule plain = make(name, ranks, microbatches);
              const Program program = lower(recompute ? with_recompute(plain) : plain, options);
              const Case at(
                  program,
                  with_memory(random_costs(program, random, visited), random,
                              scatters_microbatches(program) || gathers_parameters(program)),
                  holding);
              CAPTURE(name, ranks, microbatches, options.blocking,
                      to_string(holding.local_transfer), holding.gradient_groups, recompute);
              visit(at);
              cover.add(values);
              ++visited;
            } catch (const InputError&) {
            } catch (const Infeasible&) {
            }
  REQUIRE(visited > (covers_all() ? 2000 : 400));
  return visited;
}

Bytes standing_of(const Case& at, int rank) {
  const Program& program = at.structure.program();
  const int versions =
      program.asynchronous ? weight_versions(program)[static_cast<std::size_t>(rank)] : 1;
  const int sums = program.asynchronous || is_forward_only(program)
                       ? 1
                       : std::max(1, at.holding.gradient_groups);
  Bytes sum;
  for (int stage = 0; stage < stage_count(program); ++stage)
    if (program.placement.holds(rank, stage)) {
      const StageCost& cost = at.costs.stages[static_cast<std::size_t>(stage)];
      sum += standing_parameters(cost) + cost.parameters * (versions - 1) +
             standing_gradients(cost) * sums + cost.optimizer_state;
    }
  for (const Holder& holder : at.model.holders(at.costs, at.times, rank, /*time=*/-1))
    sum += holder.name == "set aside for graphs" ? holder.bytes : Bytes{};
  return sum;
}

TEST_CASE(
    "By reference, a gradient belongs to the stage that computed it until the previous stage has "
    "used it",
    "[sim][memory]") {
  // 0F0 to 1, in transfer to 2, 1F0 to 3, 1B0 to 5, in transfer to 6, 0B0 to 8.
  const Case at(make("gpipe", 2, 1), costs_of(two_stages()));
  CHECK(at.curve(0) == "0: 0, 0: 10, 8: 0");
  CHECK(at.curve(1) == "0: 0, 2: 20, 5: 3, 8: 0");
  CHECK(at.holders(1, 4) == "activations 1F0: 20");
  CHECK(at.holders(1, 5) == "input gradient 1B0: 3");
}

TEST_CASE("At every instant the owners' memory adds up to the curve", "[sim][memory][soak]") {
  const auto held = [](const auto& points, double time) {
    return std::prev(std::upper_bound(points.begin(), points.end(), time,
                                      [](double t, const auto& point) { return t < point.time; }));
  };
  const int visited = for_each_case([&](const Case& at) {
    const auto owners = at.model.by_owner(at.costs, at.times);
    for (int rank = 0; rank < static_cast<int>(owners.size()); ++rank) {
      const auto& own = owners[static_cast<std::size_t>(rank)];
      const auto curve = at.curves.of(rank);
      // There are millions of points: one assertion covers those of a rank.
      const auto differs = [&](const auto& point) {
        return held(own, point.time)->sum() != held(curve, point.time)->held;
      };
      REQUIRE(std::none_of(own.begin(), own.end(), differs));
      REQUIRE(std::none_of(curve.begin(), curve.end(), differs));
    }
  });
  CHECK(visited > 100);
}

TEST_CASE("The curve of each owner is separate over time", "[sim][memory]") {
  auto stages = two_stages();
  stages[1].parameters = {100};
  stages[1].backward_peak = {2};
  const Case at(make("gpipe", 2, 1), costs_of(stages), {TensorTransfer::Copy});
  const auto owners = at.model.by_owner(at.costs, at.times).at(1);
  // 1RECV_F0 is posted at once, 1F0 runs from 2 to 3, 1B0 to 5.
  REQUIRE(owners.size() == 4);
  CHECK(owners[0][Owner::Parameters] == 100);
  CHECK(owners[0][Owner::Buffers] == 4);
  CHECK(owners[1].time == 2);
  CHECK(owners[1][Owner::Activations] == 20);
  CHECK(owners[2].time == 3);
  CHECK(owners[2][Owner::Transients] == 2);
  CHECK(owners[3].sum() == 100);
}

TEST_CASE("Copied, a receive has a buffer from when it is posted to the end of its use",
          "[sim][memory]") {
  const Case at(make("gpipe", 2, 1), costs_of(two_stages()), {TensorTransfer::Copy});
  // 0RECV_B0 is posted when 0F0 is over, and its 3 bytes stay for 0B0.
  CHECK(at.curve(0) == "0: 0, 0: 10, 1: 13, 8: 0");
  // 1RECV_F0 is posted at once; the 4 bytes are the input that 1B0 needs. The gradient is released
  // with its link, which is at once.
  CHECK(at.curve(1) == "0: 0, 0: 4, 2: 24, 5: 0");
  CHECK(at.holders(0, 2) == "activations 0F0: 10, receive buffer 0RECV_B0: 3");
  CHECK(at.holders(1, 2) == "activations 1F0: 20, receive buffer 1RECV_F0: 4");
}

TEST_CASE("Copied, the stage that computed a gradient holds it until it is sent", "[sim][memory]") {
  StepCosts costs = costs_of(two_stages());
  costs.cluster.within_node.bandwidth_per_s = 1;  // 3 bytes take 3 s
  const Case at(make("gpipe", 2, 1), costs, {TensorTransfer::Copy});
  // 0F0 to 1, 4 s and one of latency to 6, 1F0 to 7, 1B0 to 9, sent from 9 to 12.
  CHECK(at.curve(1) == "0: 0, 0: 4, 6: 24, 9: 3, 12: 0");
  CHECK(at.holders(1, 9) == "input gradient 1B0: 3");
}

TEST_CASE("Stages of one rank pass data on without a buffer", "[sim][memory]") {
  const Schedule both = parse_csv("0F0,1F0,1B0,0B0\n", "s.csv");
  // 0F 0 to 1, 1F to 2, 1B to 4 makes 3, 0B to 6 uses them.
  const std::string curve = "0: 0, 0: 10, 1: 30, 4: 13, 6: 0";
  CHECK(Case(both, costs_of(two_stages())).curve(0) == curve);
  CHECK(Case(both, costs_of(two_stages()), {TensorTransfer::Copy}).curve(0) == curve);
}

TEST_CASE("An input gradient frees its part of the activations, the weight gradient the rest",
          "[sim][memory]") {
  StageCost cost = times(1, 1, 1);
  cost.activation = {10};
  cost.forward_peak = {10};
  cost.freed_by_input_gradient = {7};
  const Case split(parse_csv("0F0,0I0,0W0\n", "s.csv"), costs_of({cost}));
  CHECK(split.curve(0) == "0: 0, 0: 10, 2: 3, 3: 0");
  CHECK(split.holders(0, 1) == "activations 0F0: 10");
  CHECK(split.holders(0, 2) == "activations 0F0: 3");
  const Case whole(parse_csv("0F0,0B0\n", "s.csv"), costs_of({cost}));
  CHECK(whole.curve(0) == "0: 0, 0: 10, 3: 0");
}

TEST_CASE("An input gradient keeps gradients for the weight gradient", "[sim][memory]") {
  StageCost cost = times(1, 1, 1);
  cost.activation = {10};
  cost.forward_peak = {10};
  cost.gradients_for_weights = {4};
  const Case split(parse_csv("0F0,0I0,0W0\n", "s.csv"), costs_of({cost}));
  CHECK(split.curve(0) == "0: 0, 0: 10, 2: 14, 3: 0");
  CHECK(split.holders(0, 2) == "activations 0F0: 10, gradients for weights of 0I0: 4");
  const Case whole(parse_csv("0F0,0B0\n", "s.csv"), costs_of({cost}));
  CHECK(whole.curve(0) == "0: 0, 0: 10, 3: 0");
}

TEST_CASE("A recomputing input gradient keeps the recomputed activations for the weight gradient",
          "[sim][memory]") {
  StageCost cost = times(1, 1, 1);
  // Two layers: 2 bytes are the input of the second, which recomputes 3.
  cost.rerun = {.first = {1},
                .others = {1},
                .kept = {2},
                .forward_peak = {2},
                .recomputed_bytes = {3},
                .rerun_peak = {3},
                .backward_peak = {9},
                .input_gradient_peak = {9},
                .left_for_weights = {5}};
  const Case split(parse_csv("0F0,0R0,0I0,0W0\n", "s.csv"), costs_of({cost}));
  // 0F0 to 1, 0R0 to 2, 0I0, which recomputes the first layer, to 4, 0W0 to 5.
  CHECK(split.curve(0) == "0: 0, 0: 2, 1: 5, 2: 14, 4: 10, 5: 0");
  CHECK(split.holders(0, 2) == "transient of 0I0: 9, activations 0R0: 3, inputs of layers 0F0: 2");
  CHECK(split.holders(0, 4) ==
        "recomputed activations 0I0: 5, activations 0R0: 3, inputs of layers 0F0: 2");
  // A whole backward releases each layer's memory before it continues with the next.
  const Case whole(parse_csv("0F0,0R0,0B0\n", "s.csv"), costs_of({cost}));
  CHECK(whole.curve(0) == "0: 0, 0: 2, 1: 5, 2: 14, 5: 0");
}

/// Returns stages that both keep 10 bytes, of which stage 0's output of 4 is saved by no layer; the
/// gradient sent back has 3.
std::vector<StageCost> two_split_stages() {
  auto stages = two_stages();
  stages[0].output_alone = {4};
  stages[1].activation = {10};
  return stages;
}

TEST_CASE("An input gradient frees the stage's output, if the next stage no longer needs it",
          "[sim][memory]") {
  auto stages = two_split_stages();
  // 0F0 to 1, 1F0 from 2 to 3, 1I0 to 4, 0I0 from 5 to 6, 0W0 to 7, 1W0 early or late.
  const Schedule early = parse_csv("0F0,0I0,0W0\n1F0,1I0,1W0\n", "s.csv");
  CHECK(Case(early, costs_of(stages)).curve(0) == "0: 0, 0: 10, 6: 6, 7: 0");
  stages[1].input_for_weights = true;  // 1W0 ends at 5
  CHECK(Case(early, costs_of(stages)).curve(0) == "0: 0, 0: 10, 6: 6, 7: 0");
  stages[1].weight_gradient = {4};  // 1W0 ends at 8
  const Case late(early, costs_of(stages));
  CHECK(late.curve(0) == "0: 0, 0: 10, 7: 4, 8: 0");
  CHECK(late.holders(0, 7) == "activations 0F0: 4");
  // If data are copied, the next stage reads its own buffer.
  CHECK(Case(early, costs_of(stages), {TensorTransfer::Copy}).holders(0, 6.5) ==
        "activations 0F0: 6");
}

TEST_CASE(
    "A gradient that the weight gradient needs stays with its stage until that action has run",
    "[sim][memory]") {
  auto stages = two_split_stages();
  const Schedule schedule = parse_csv("0F0,0I0,0W0\n1F0,1B0\n", "s.csv");
  // 1B0 ends at 5, 0I0 runs from 6 to 7, 0W0 to 8.
  CHECK(Case(schedule, costs_of(stages)).curve(1) == "0: 0, 2: 10, 5: 3, 7: 0");
  stages[0].output_gradient_for_weights = true;
  CHECK(Case(schedule, costs_of(stages)).curve(1) == "0: 0, 2: 10, 5: 3, 8: 0");
  const Case copied(schedule, costs_of(stages), {TensorTransfer::Copy});
  CHECK(copied.holders(0, 7) == "activations 0F0: 6, receive buffer 0RECV_B0: 3");
}

TEST_CASE("With recomputed layers, the received gradient is free when the last layer is done",
          "[sim][memory]") {
  auto stages = two_stages();
  stages[0].rerun = {.first = {1}, .others = {2}, .backward_share = 0.25};
  // 1B0 ends at 5, and 0B0 runs from 6 to 10.
  const Case at(parse_csv("0F0,0R0,0B0\n1F0,1B0\n", "s.csv"), costs_of(stages));
  CHECK(at.curve(1) == "0: 0, 2: 20, 5: 3, 7: 0");
  CHECK(at.holders(1, 6.5) == "input gradient 1B0: 3");
  CHECK(at.holders(1, 7) == "");
}

TEST_CASE("Until it runs again, a recomputed forward keeps only its output", "[sim][memory]") {
  auto stages = two_stages();
  stages[0].forward_peak = {15};
  stages[0].rerun = rerun_at_once(stages[0]);
  const Schedule schedule = parse_csv("0F0,0R0,0B0\n1F0,1B0\n", "s.csv");
  // 0F0 to 1, 1F0 from 2 to 3, 1B0 to 5, 0R0 may run from 1 to 2, 0B0 from 6 to 8.
  const Case at(schedule, costs_of(stages));
  // 0R0 recomputes the output, while 1B0 still uses the first one.
  CHECK(at.curve(0) == "0: 0, 0: 15, 1: 19, 2: 14, 5: 10, 8: 0");
  CHECK(at.holders(0, 0) == "transient of 0F0: 11, output 0F0: 4");
  CHECK(at.holders(0, 1) == "activations 0R0: 10, transient of 0R0: 5, output 0F0: 4");
  // If data are copied, the output is released after its send, and recomputed.
  const Case copied(schedule, costs_of(stages), {TensorTransfer::Copy});
  CHECK(copied.holders(0, 0) == "transient of 0F0: 11, output 0F0: 4");
  CHECK(copied.holders(0, 1) == "activations 0R0: 10, transient of 0R0: 5");
}

TEST_CASE("Inference frees all memory that it does not send", "[sim][memory]") {
  StepCosts costs = costs_of(two_stages());
  costs.cluster.within_node.bandwidth_per_s = 1;
  const Schedule schedule = parse_csv("0F0\n1F0\n", "s.csv");
  CHECK(Case(schedule, costs).curve(0) == "0: 0, 0: 10, 1: 0");
  CHECK(Case(schedule, costs, {TensorTransfer::Copy}).curve(0) == "0: 0, 0: 10, 1: 4, 5: 0");
  CHECK(Case(schedule, costs, {TensorTransfer::Copy}).curve(1) == "0: 0, 0: 4, 6: 24, 7: 0");
}

TEST_CASE("A longer microbatch keeps more, and its buffers are larger", "[sim][memory]") {
  // 1B0 from 7 to 9, 0B0 from 10 to 12; then 0RECV_B1 is posted, and 1B1 is from 14 to 15.
  StepCosts costs = costs_of(two_stages());
  costs.microbatch_lengths = {1, 2.5};
  const Case at(make("gpipe", 2, 2), costs, {TensorTransfer::Copy});
  CHECK(at.holders(0, 9) == "activations 0F1: 25, activations 0F0: 10, receive buffer 0RECV_B0: 3");
  CHECK(at.holders(0, 12) == "activations 0F1: 25, receive buffer 0RECV_B1: 8");
}

TEST_CASE("Permanent memory is listed by owner, including PipeDream's older weights",
          "[sim][memory]") {
  auto stages = two_stages();
  stages[0].parameters = {100};
  stages[0].gradients = {50};
  stages[0].optimizer_state = {200};
  CHECK(Case(make("1f1b", 2, 4), costs_of(stages)).holders(0, 1e9) ==
        "optimizer state: 200, parameters: 100, gradients: 50");
  ScheduleRequest request;
  request.name = "pipedream";
  request.ranks = 2;
  request.microbatches = 4;
  const Case versions(lower(make_schedule(request), lowering_of(request)), costs_of(stages), {});
  REQUIRE(weight_versions(versions.structure.program()).front() == 2);
  CHECK(versions.holders(0, 1e9) ==
        "optimizer state: 200, parameters: 100, older weights: 100, gradients: 50");
}

TEST_CASE("A curve begins and ends with the permanent memory, and its peak is its highest point",
          "[sim][memory][soak]") {
  const int cases = for_each_case([](const Case& at) {
    for (int rank = 0; rank < static_cast<int>(at.structure.program().ranks.size()); ++rank) {
      const auto curve = at.curves.of(rank);
      const Bytes standing = standing_of(at, rank);
      REQUIRE(curve.front().time == 0);
      REQUIRE(curve.front().held == standing.value);
      REQUIRE(curve.back().held == standing.value);
      std::int64_t highest = 0, lowest = curve.front().held;
      bool rises = true;  // in time
      for (std::size_t point = 0; point < curve.size(); ++point) {
        rises = rises && (point < 2 || curve[point].time > curve[point - 1].time);
        lowest = std::min(lowest, curve[point].held);
        highest = std::max(highest, curve[point].held);
      }
      REQUIRE(rises);
      REQUIRE(lowest >= standing.value);
      REQUIRE(at.curves.peaks[static_cast<std::size_t>(rank)].held == Bytes{highest});
    }
  });
  CHECK(cases > (covers_all() ? 1000 : 400));
}

TEST_CASE("At any instant the holders add up to the curve, to the byte", "[sim][memory][soak]") {
  std::mt19937 random(8);
  for_each_case([&](const Case& at) {
    const auto ranks = static_cast<int>(at.structure.program().ranks.size());
    const int rank = std::uniform_int_distribution(0, ranks - 1)(random);
    const auto check_at = [&](const MemoryPoint& point) {
      Bytes sum;
      for (const Holder& holder : at.model.holders(at.costs, at.times, rank, point.time))
        sum += holder.bytes;
      REQUIRE(sum == Bytes{point.held});
    };
    const MemoryPeak& peak = at.curves.peaks[static_cast<std::size_t>(rank)];
    if (peak.time > 0)  // at 0 the first point is only the standing memory
      check_at({peak.time, peak.held.value});
    const auto curve = at.curves.of(rank);
    if (curve.size() > 1)
      check_at(curve[std::uniform_int_distribution<std::size_t>(1, curve.size() - 1)(random)]);
  });
}

/// Returns the curve of one rank with gradients of 100 bytes and nothing else; F takes 1 s, I and W
/// too.
std::string curve_of_gradients(const Schedule& schedule, int groups) {
  std::vector<StageCost> stages(static_cast<std::size_t>(stage_count(schedule)), times(1, 1, 1));
  for (StageCost& stage : stages)
    stage.gradients = {100};
  return Case(schedule, costs_of(stages), {.gradient_groups = groups}).curve(0);
}

TEST_CASE("Gradients that arrive early are stored separately", "[sim][memory]") {
  const Schedule reversed = parse_csv("0F0,0F1,0F2,0B2,0B1,0B0\n", "test");
  CHECK(curve_of_gradients(reversed, 0) == "0: 100");
  CHECK(curve_of_gradients(reversed, 1) == "0: 100, 5: 200, 7: 300, 9: 100");
  // Microbatches 0 and 1, and 2, whose group has its own sum.
  CHECK(curve_of_gradients(reversed, 2) == "0: 200, 7: 300, 9: 200");
  CHECK(curve_of_gradients(reversed, 3) == "0: 300");

  // From the end of the weight gradient; that of 1 also adds 2, and 3 is in order.
  const Schedule mixed = parse_csv("0F0,0F1,0F2,0F3,0I0,0W0,0I2,0I1,0W2,0W1,0B3\n", "test");
  CHECK(curve_of_gradients(mixed, 1) == "0: 100, 9: 200, 10: 100");
  const Schedule in_order = parse_csv("0F0,0F1,0I0,0I1,0W0,0W1\n", "test");
  CHECK(curve_of_gradients(in_order, 1) == "0: 100");
}

TEST_CASE("Sharded gradients are complete from a backward's start until their reduction ends",
          "[sim][memory]") {
  StageCost stage = times(1, 1, 1);
  stage.gradients = {100};
  stage.gradients_elsewhere = {50};
  StepCosts costs = costs_of({stage});
  costs.replicas = 2;
  const auto curve = [&](const char* actions,
                         TensorTransfer local_transfer = TensorTransfer::Reference) {
    return Case(lower(parse_csv(actions, "test"), {.replicas = 2, .zero = 2}), costs,
                {local_transfer, 1})
        .curve(0);
  };
  // 0B0 to 4 and its sum to 5: then 0B1, to 7.
  CHECK(curve("0F0,0F1,0B0,0B1\n") == "0: 50, 2: 150, 5: 150, 8: 50");
  CHECK(curve("0F0,0F1,0B0,0B1\n", TensorTransfer::Copy) ==
        "0: 50, 2: 150, 4: 200, 5: 150, 7: 200, 8: 50");
  // The shard of 1 is set aside until 0 is done.
  CHECK(curve("0F0,0F1,0B1,0B0\n") == "0: 50, 2: 150, 5: 200, 8: 50");
  // Another forward overlaps with the reduction.
  CHECK(curve("0F0,0B0,0F1,0B1\n") == "0: 50, 1: 150, 4: 150, 7: 50");
  CHECK(Case(lower(parse_csv("0F0,0B0\n", "test"), {.replicas = 2, .zero = 2}), costs, {})
            .holders(0, 2) == "gradients of 0B0: 100, gradients: 50");
}

TEST_CASE("Sharded parameters are complete from the start of their gathering until they are freed",
          "[sim][memory]") {
  StageCost stage = times(1, 1, 1);
  stage.parameters = {100};
  stage.parameters_elsewhere = {50};
  StepCosts costs = costs_of({stage, stage});
  costs.replicas = 2;
  const auto curve = [&](int whole, TensorTransfer local_transfer = TensorTransfer::Reference) {
    return Case(lower(parse_csv("0F0,1F0,1B0,0B0\n", "test"),
                      {.replicas = 2, .zero = 3, .whole_stages = whole}),
                costs, {local_transfer, 1})
        .curve(0);
  };
  // Each all-gather takes 1 s: 0F0 to 2, 1F0 to 4 and 1B0 to 6, its reduction to 7, 0B0 from 8 to
  // 10.
  CHECK(curve(1) == "0: 100, 0: 200, 2: 200, 6: 100, 7: 200, 10: 100");
  CHECK(curve(1, TensorTransfer::Copy) ==
        "0: 100, 0: 250, 1: 200, 2: 250, 3: 200, 6: 100, 7: 250, 8: 200, 10: 100");
  // Both at once, gathered one after the other: 1F0 need not wait.
  CHECK(curve(2) == "0: 100, 0: 200, 1: 300, 5: 200, 8: 100");
}

TEST_CASE(
    "zb-h1 stores all weight gradients separately if the newest come first, none if the oldest do",
    "[sim][memory]") {
  for (const int P : {2, 4})
    for (const int M : {4, 9}) {
      std::vector<StageCost> stages(static_cast<std::size_t>(P), times(1, 1, 1));
      for (StageCost& stage : stages)
        stage.gradients = {100};
      const Schedule newest = make("zb-h1", P, M);
      for (int rank = 0; rank < P; ++rank) {
        const auto peak = [&](const Schedule& schedule) {
          const Case at(schedule, costs_of(stages), {.gradient_groups = 1});
          return at.curves.peaks[static_cast<std::size_t>(rank)].held.value;
        };
        CAPTURE(P, M, rank);
        CHECK(peak(newest) == (rank == 0 ? 100 : 100 * M));
        CHECK(peak(oldest_weight_gradients_first(newest)) == 100);
      }
    }
}

TEST_CASE("Larger activations never lower a peak", "[sim][memory][soak]") {
  for_each_case([](const Case& at) {
    StepCosts larger = at.costs;
    for (StageCost& stage : larger.stages) {
      stage.activation += Bytes{11};
      stage.forward_peak += Bytes{11};
    }
    MemoryModel model(at.structure);
    MemoryModel again(at.structure);
    const auto& small = model.curves(at.costs, at.times).peaks;
    const auto& large = again.curves(larger, at.times).peaks;
    for (std::size_t rank = 0; rank < small.size(); ++rank)
      REQUIRE(large[rank].held >= small[rank].held);
  });
}

TEST_CASE("A memory model that was used before gives the same results as a new one",
          "[sim][memory]") {
  std::mt19937 random(12);
  const Structure structure(lower(make("interleaved-zb", 4, 8, 2)));
  Simulator simulator(structure);
  MemoryModel kept(structure, {TensorTransfer::Copy});
  for (int round = 0; round < 8; ++round) {
    const StepCosts costs = with_memory(random_costs(structure.program(), random, round), random);
    const Times& times = simulator.run(costs);
    MemoryModel fresh(structure, {TensorTransfer::Copy});
    CHECK(samples_of(kept.curves(costs, times)) == samples_of(fresh.curves(costs, times)));
  }
}

}  // namespace memory_test
