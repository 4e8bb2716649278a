#include "pipewright/sim/scenario/simulate.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <sstream>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/schedules/placement_of.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace simulate_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using pipewright::test::error_of;

constexpr LoweringOptions edge_eager{};
constexpr LoweringOptions edge_rendezvous{.transfers = TransferMode::Rendezvous};
constexpr LoweringOptions rank_eager{.communicators = CommunicatorLayout::Rank};
constexpr LoweringOptions rank_rendezvous{.communicators = CommunicatorLayout::Rank,
                                          .transfers = TransferMode::Rendezvous};

StageCost times(double forward, double input_gradient, double weight_gradient) {
  StageCost cost;
  cost.forward = {forward};
  cost.input_gradient = {input_gradient};
  cost.weight_gradient = {weight_gradient};
  return cost;
}

std::vector<StageCost> equal_stages(int stages, const StageCost& cost) {
  return std::vector<StageCost>(static_cast<std::size_t>(stages), cost);
}

/// Returns one node; every pair of ranks is joined by such a link.
Cluster linked(double latency, double bandwidth_per_s = std::numeric_limits<double>::infinity()) {
  Cluster cluster;
  cluster.within_node = {.latency = {latency}, .bandwidth_per_s = bandwidth_per_s, .shared = false};
  return cluster;
}

Timeline completed(const Outcome& outcome) {
  if (const auto* deadlock = std::get_if<Deadlock>(&outcome))
    FAIL(deadlock->cycle);
  return std::get<Completed>(outcome).timeline;
}

Timeline timeline_of(const Schedule& schedule, const std::vector<StageCost>& costs,
                     const Cluster& cluster, const LoweringOptions& options = {}) {
  return completed(simulate(lower(schedule, options), costs, cluster));
}

/// The start and end of an action; actions that the test does not name are ignored.
struct Interval {
  double start = 0;
  double end = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Interval& interval) {
    return out << interval.start << " to " << interval.end;
  }
};

Interval span_of(const Timeline& timeline, const std::string& action) {
  for (const Span& span : timeline.spans)
    if (span.action == action)
      return {span.start.value, span.end.value};
  FAIL("no span " << action);
  return {};
}

/// Returns the memory of a rank at the end of each time, as "time: bytes".
std::string memory_of(const Timeline& timeline, int rank) {
  std::map<double, std::int64_t> held;
  for (const MemorySample& sample : timeline.memory)
    if (sample.rank == rank)
      held[sample.time.value] = sample.held.value;
  std::ostringstream text;
  for (const auto& [time, bytes] : held)
    text << (time == held.begin()->first ? "" : ", ") << time << ": " << bytes;
  return text.str();
}

/// Returns three stages, the first and the last on rank 0. Each rank sends before it receives.
Schedule there_and_back() {
  return parse_csv(
      "0F0,0F1,2F0,2B0,2F1,2B1,0B0,0B1\n"
      "1F0,1F1,1B0,1B1\n",
      "s.csv");
}

/// A random number of stages and microbatches, whole seconds and bytes.
struct RandomCase {
  Schedule schedule;
  std::vector<StageCost> costs;
  Cluster cluster;
};

int pick(std::mt19937& random, int least, int most) {
  return std::uniform_int_distribution(least, most)(random);
}

/// Returns any of the schedules, in sizes that it supports.
Schedule random_schedule(std::mt19937& random) {
  const auto& names = schedule_names();
  while (true) {
    const auto name = static_cast<std::size_t>(pick(random, 0, static_cast<int>(names.size()) - 1));
    try {
      return make_schedule(names[name], pick(random, 1, 5), pick(random, 1, 7));
    } catch (const InputError&) {
      continue;
    }
  }
}

RandomCase random_case(std::mt19937& random) {
  RandomCase made{
      .schedule = random_schedule(random), .costs = {}, .cluster = linked(pick(random, 0, 3), 1)};
  for (int stage = 0; stage < stage_count(made.schedule); ++stage) {
    StageCost cost = times(pick(random, 0, 9), pick(random, 0, 9), pick(random, 0, 9));
    cost.load = {static_cast<double>(pick(random, 0, 2))};
    cost.optimizer_step = {static_cast<double>(pick(random, 0, 2))};
    cost.output = {pick(random, 0, 4)};
    cost.input_gradient_bytes = {pick(random, 0, 4)};
    made.costs.push_back(cost);
  }
  return made;
}

std::vector<LoweringOptions> all_options() {
  std::vector<LoweringOptions> options;
  for (const auto layout :
       {CommunicatorLayout::Edge, CommunicatorLayout::Pair, CommunicatorLayout::Rank})
    for (const auto mode : {TransferMode::Eager, TransferMode::Rendezvous})
      for (const bool blocking : {false, true})
        options.push_back({layout, mode, blocking});
  return options;
}

/// Makes one thing slower: an action of one stage, a transfer, or the links.
void slow_down(RandomCase& at, std::mt19937& random) {
  const auto stage =
      static_cast<std::size_t>(pick(random, 0, static_cast<int>(at.costs.size()) - 1));
  StageCost& cost = at.costs[stage];
  const int more = pick(random, 1, 5);
  const Seconds longer{static_cast<double>(more)};
  switch (pick(random, 0, 7)) {
    case 0:
      cost.forward += longer;
      break;
    case 1:
      cost.input_gradient += longer;
      break;
    case 2:
      cost.weight_gradient += longer;
      break;
    case 3:
      cost.load += longer;
      break;
    case 4:
      cost.optimizer_step += longer;
      break;
    case 5:
      cost.output += Bytes{more};
      break;
    case 6:
      cost.input_gradient_bytes += Bytes{more};
      break;
    case 7:
      at.cluster.within_node.latency += longer;
      break;
  }
}

TEST_CASE("Equal stages: an iteration takes (M + P - 1)(F + B), a rank idles (P - 1)(F + B)",
          "[sim][simulate]") {
  const StageCost cost = times(3, 2, 5);  // F = 3, B = 7
  for (const std::string name : {"gpipe", "1f1b"})
    for (const int ranks : {1, 2, 3, 4, 6, 8, 16})
      for (const int microbatches : {1, 2, 3, 4, 6, 8, 16, 32, 64}) {
        const Timeline timeline = timeline_of(make_schedule(name, ranks, microbatches),
                                              equal_stages(ranks, cost), linked(0));
        CAPTURE(name, ranks, microbatches);
        REQUIRE(timeline.length == Seconds{(microbatches + ranks - 1) * 10.0});
        for (const Seconds& bubble : bubble_per_rank(timeline))
          REQUIRE(bubble == Seconds{(ranks - 1) * 10.0});
      }
}

TEST_CASE("Activations at the peak: min(M, P - r) under 1F1B, M under GPipe", "[sim][simulate]") {
  StageCost cost = times(1, 1, 1);
  cost.activation = {100};
  cost.forward_peak = {100};
  for (const int ranks : {1, 2, 3, 4, 8})
    for (const int microbatches : {1, 2, 3, 5, 8, 16}) {
      std::vector<Bytes> fewest;
      for (int rank = 0; rank < ranks; ++rank)
        fewest.push_back(Bytes{100} * std::min(microbatches, ranks - rank));
      const std::vector<Bytes> all(fewest.size(), Bytes{100} * microbatches);
      const auto costs = equal_stages(ranks, cost);
      CAPTURE(ranks, microbatches);
      CHECK(peak_per_rank(timeline_of(make_1f1b(ranks, microbatches), costs, linked(0))) == fewest);
      CHECK(peak_per_rank(timeline_of(make_gpipe(ranks, microbatches), costs, linked(0))) == all);
    }
}

TEST_CASE("1F1B of two ranks with a latency of 0.5, by hand", "[sim][simulate]") {
  // F = 1, B = 2. Every hop adds its half second, and 1F1B hides none of them after the first:
  //
  //   time    0    1    2    3    4    5    6    7    8    9   10   11   12   13   14
  //   rank 0  [0F0][0F1]               [  0B0   ][0F2][  0B1   ]          [  0B2   ]
  //   rank 1         [1F0][  1B0   ][1F1][  1B1   ]     [1F2][  1B2   ]
  const Timeline timeline =
      timeline_of(make_1f1b(2, 3), equal_stages(2, times(1, 1, 1)), linked(0.5));
  CHECK(span_of(timeline, "0F0") == Interval{0, 1});
  CHECK(span_of(timeline, "0F1") == Interval{1, 2});
  CHECK(span_of(timeline, "1F0") == Interval{1.5, 2.5});
  CHECK(span_of(timeline, "1B0") == Interval{2.5, 4.5});
  CHECK(span_of(timeline, "1F1") == Interval{4.5, 5.5});
  CHECK(span_of(timeline, "0B0") == Interval{5, 7});
  CHECK(span_of(timeline, "1B1") == Interval{5.5, 7.5});
  CHECK(span_of(timeline, "0F2") == Interval{7, 8});
  CHECK(span_of(timeline, "0B1") == Interval{8, 10});
  CHECK(span_of(timeline, "1F2") == Interval{8.5, 9.5});
  CHECK(span_of(timeline, "1B2") == Interval{9.5, 11.5});
  CHECK(span_of(timeline, "0B2") == Interval{12, 14});

  CHECK(span_of(timeline, "0SEND_F0") == Interval{1, 1.5});
  CHECK(span_of(timeline, "1RECV_F0") == Interval{0, 1.5});  // posted at once
  CHECK(span_of(timeline, "1SEND_B2") == Interval{11.5, 12});
  CHECK(timeline.length == Seconds{14});
  CHECK(bubble_per_rank(timeline) == std::vector<Seconds>{{5}, {5}});
}

TEST_CASE("GPipe has a latency once per transfer between stages in each direction",
          "[sim][simulate]") {
  for (const int ranks : {1, 2, 3, 8}) {
    const Timeline timeline =
        timeline_of(make_gpipe(ranks, 5), equal_stages(ranks, times(1, 1, 1)), linked(0.5));
    CAPTURE(ranks);
    CHECK(timeline.length == Seconds{(5 + ranks - 1) * 3 + (ranks - 1) * 2 * 0.5});
  }
}

TEST_CASE("Loads are before the first forwards, the optimizer's step is last", "[sim][simulate]") {
  auto costs = equal_stages(2, times(1, 1, 1));
  costs[0].load = {0.25};
  costs[0].optimizer_step = {3};
  const Timeline timeline = timeline_of(make_gpipe(2, 1), costs, linked(0));
  CHECK(span_of(timeline, "0LOAD0") == Interval{0, 0.25});
  CHECK(span_of(timeline, "0F0") == Interval{0.25, 1.25});
  CHECK(span_of(timeline, "0B0") == Interval{4.25, 6.25});
  CHECK(span_of(timeline, "0STEP") == Interval{6.25, 9.25});
  CHECK(timeline.length == Seconds{9.25});
}

TEST_CASE("A split backward sends the input gradient on before the weight gradient runs",
          "[sim][simulate]") {
  const Schedule schedule = parse_csv("0F0,0I0,0W0\n1F0,1I0,1W0\n", "s.csv");
  const Timeline timeline = timeline_of(schedule, equal_stages(2, times(1, 2, 4)), linked(0));
  CHECK(span_of(timeline, "1I0") == Interval{2, 4});
  CHECK(span_of(timeline, "1W0") == Interval{4, 8});
  CHECK(span_of(timeline, "0I0") == Interval{4, 6});
  CHECK(span_of(timeline, "0W0") == Interval{6, 10});
}

TEST_CASE("Stages of one rank pass data on at no cost", "[sim][simulate]") {
  const Schedule schedule = parse_csv("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", "v.csv");
  const Timeline timeline = timeline_of(schedule, equal_stages(4, times(1, 1, 0)), linked(0.5));
  CHECK(span_of(timeline, "1F0") == Interval{1.5, 2.5});
  CHECK(span_of(timeline, "2F0") == Interval{2.5, 3.5});  // same rank
  CHECK(span_of(timeline, "3F0") == Interval{4, 5});
  CHECK(span_of(timeline, "3B0") == Interval{5, 6});
  CHECK(timeline.length == Seconds{10});  // 8 actions of a second and 4 hops
}

TEST_CASE("A transfer holds its link for bytes over bandwidth and arrives one latency later",
          "[sim][simulate]") {
  auto costs = equal_stages(2, times(0.5, 1, 0));
  costs[0].output = {100};
  const Timeline timeline = timeline_of(make_gpipe(2, 2), costs, linked(0.25, 100));
  CHECK(span_of(timeline, "0SEND_F0") == Interval{0.5, 1.75});
  // 0F1 ends at 1.0, but the link is held until 1.5.
  CHECK(span_of(timeline, "0F1") == Interval{0.5, 1});
  CHECK(span_of(timeline, "0SEND_F1") == Interval{1.5, 2.75});
  CHECK(span_of(timeline, "1F0") == Interval{1.75, 2.25});
  CHECK(span_of(timeline, "1F1") == Interval{2.75, 3.25});
}

TEST_CASE("The two directions of a link are two links", "[sim][simulate]") {
  auto costs = equal_stages(2, times(1, 1, 0));
  costs[0].output = {100};
  costs[1].input_gradient_bytes = {100};
  // 1SEND_B0 starts at 4 while 0SEND_F2 holds the other direction from 3 to 4 and 0SEND_F3 from 4.
  const Timeline timeline = timeline_of(
      parse_csv("0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n", "s.csv"),
      costs, linked(0, 100));
  CHECK(span_of(timeline, "0SEND_F3") == Interval{4, 5});
  CHECK(span_of(timeline, "1SEND_B0") == Interval{4, 5});
}

TEST_CASE("Ranks of two nodes use the link between them", "[sim][simulate]") {
  Cluster cluster = linked(0.5);
  cluster.nodes = 2;
  cluster.between_nodes.latency = {2};
  const Timeline timeline = timeline_of(make_gpipe(2, 1), equal_stages(2, times(1, 1, 0)), cluster);
  CHECK(span_of(timeline, "0SEND_F0") == Interval{1, 3});
}

TEST_CASE("One queue per rank: a receive waits for the send before it", "[sim][simulate]") {
  // Rank 1 sends its first output from 3 to 4. The second input has arrived at 3, but in a single
  // queue its receive comes after that send.
  auto costs = equal_stages(3, times(1, 1, 0));
  for (StageCost& cost : costs)
    cost.output = {100};
  const auto run = [&](CommunicatorLayout layout) {
    return timeline_of(make_gpipe(3, 2), costs, linked(0, 100), {.communicators = layout});
  };
  CHECK(span_of(run(CommunicatorLayout::Edge), "1F1") == Interval{3, 4});
  CHECK(span_of(run(CommunicatorLayout::Pair), "1F1") == Interval{3, 4});  // two pairs, two queues
  CHECK(span_of(run(CommunicatorLayout::Rank), "1F1") == Interval{4, 5});
  CHECK(run(CommunicatorLayout::Rank).length > run(CommunicatorLayout::Edge).length);
}

TEST_CASE("One queue per pair: a receive waits for the send in the other direction",
          "[sim][simulate]") {
  // Rank 1 sends the gradient of microbatch 0 from 4 to 5; the input of microbatch 1 has long
  // arrived.
  auto costs = equal_stages(2, times(1, 1, 0));
  costs[0].output = {100};
  costs[1].input_gradient_bytes = {100};
  const auto run = [&](CommunicatorLayout layout) {
    return timeline_of(make_1f1b(2, 2), costs, linked(0, 100), {.communicators = layout});
  };
  CHECK(span_of(run(CommunicatorLayout::Edge), "1F1") == Interval{4, 5});
  CHECK(span_of(run(CommunicatorLayout::Pair), "1F1") == Interval{5, 6});
  CHECK(span_of(run(CommunicatorLayout::Rank), "1F1") == Interval{5, 6});
}

TEST_CASE("Rendezvous: a transfer starts when both ends have reached it", "[sim][simulate]") {
  const auto costs = equal_stages(2, times(1, 1, 1));
  const Timeline eager = timeline_of(make_1f1b(2, 3), costs, linked(0.5), edge_eager);
  CHECK(span_of(eager, "0SEND_F1") == Interval{2, 2.5});
  CHECK(span_of(eager, "1F1") == Interval{4.5, 5.5});

  // Rank 1 posts the receive of microbatch 1 when its backward of microbatch 0 is over.
  const Timeline rendezvous = timeline_of(make_1f1b(2, 3), costs, linked(0.5), edge_rendezvous);
  CHECK(span_of(rendezvous, "1B0") == Interval{2.5, 4.5});
  CHECK(span_of(rendezvous, "0SEND_F1") == Interval{4.5, 5});
  CHECK(span_of(rendezvous, "1RECV_F1") == Interval{4.5, 5});
  CHECK(span_of(rendezvous, "1F1") == Interval{5, 6});
}

TEST_CASE("During blocking communication a rank computes nothing", "[sim][simulate]") {
  const auto costs = equal_stages(2, times(1, 1, 1));
  const Timeline beside = timeline_of(make_gpipe(2, 2), costs, linked(0.5));
  CHECK(span_of(beside, "0F1") == Interval{1, 2});
  const Timeline blocking = timeline_of(make_gpipe(2, 2), costs, linked(0.5), {.blocking = true});
  CHECK(span_of(blocking, "0SEND_F0") == Interval{1, 1.5});
  CHECK(span_of(blocking, "0F1") == Interval{1.5, 2.5});
}

TEST_CASE("A deadlock shows the cycle: 1F1B by rendezvous in one queue per rank",
          "[sim][simulate]") {
  // Rank 0 offers microbatch 1 while rank 1 offers the gradient of microbatch 0.
  const Outcome outcome = simulate(lower(make_1f1b(2, 3), rank_rendezvous),
                                   equal_stages(2, times(1, 1, 1)), linked(0.5));
  REQUIRE(std::holds_alternative<Deadlock>(outcome));
  CHECK(std::get<Deadlock>(outcome).cycle ==
        "deadlock: rank 0 at 0SEND_F1 waits for 1RECV_F1, which rank 1 runs after 1SEND_B0; rank 1 "
        "at 1SEND_B0 waits for 0RECV_B0, which rank 0 runs after 0SEND_F1");
}

TEST_CASE("Two ranks that send before they receive: a deadlock in one queue, not in one per edge",
          "[sim][simulate]") {
  const auto costs = equal_stages(3, times(1, 1, 1));
  const auto run = [&](const LoweringOptions& options) {
    return simulate(lower(there_and_back(), options), costs, linked(0.5));
  };
  const Outcome stuck = run(rank_rendezvous);
  REQUIRE(std::holds_alternative<Deadlock>(stuck));
  CHECK(std::get<Deadlock>(stuck).cycle ==
        "deadlock: rank 0 at 0SEND_F1 waits for 1RECV_F1, which rank 1 runs after 1SEND_F0; rank 1 "
        "at 1SEND_F0 waits for 2RECV_F0, which rank 0 runs after 0SEND_F1");
  CHECK(std::holds_alternative<Completed>(run(edge_eager)));
  CHECK(std::holds_alternative<Completed>(run(edge_rendezvous)));
  CHECK(std::holds_alternative<Completed>(run(rank_eager)));
}

TEST_CASE("No layout or mode makes an iteration shorter than edge and eager", "[sim][simulate]") {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const RandomCase at = random_case(random);
    const Seconds least = timeline_of(at.schedule, at.costs, at.cluster, edge_eager).length;
    CAPTURE(to_string(at.schedule));
    for (const LoweringOptions& options : all_options()) {
      const Outcome outcome = simulate(lower(at.schedule, options), at.costs, at.cluster);
      if (const auto* done = std::get_if<Completed>(&outcome))
        REQUIRE(done->timeline.length >= least);
      else
        REQUIRE(options.transfers == TransferMode::Rendezvous);
    }
  }
}

TEST_CASE("More time anywhere never shortens the iteration", "[sim][simulate]") {
  std::mt19937 random(11);
  const auto options = all_options();
  for (int round = 0; round < 2000; ++round) {
    const RandomCase before = random_case(random);
    RandomCase after = before;
    slow_down(after, random);
    const Program program =
        lower(before.schedule, options[static_cast<std::size_t>(round) % options.size()]);
    CAPTURE(to_string(before.schedule), round);
    const Outcome fast = simulate(program, before.costs, before.cluster);
    const Outcome slow = simulate(program, after.costs, after.cluster);
    REQUIRE(fast.index() == slow.index());  // costs neither create nor remove a deadlock
    if (const auto* done = std::get_if<Completed>(&fast))
      REQUIRE(std::get<Completed>(slow).timeline.length >= done->timeline.length);
  }
}

TEST_CASE("An iteration is never shorter than the busiest rank or one microbatch's path",
          "[sim][simulate]") {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const RandomCase at = random_case(random);
    const Timeline timeline = timeline_of(at.schedule, at.costs, at.cluster);
    Seconds way;
    for (const StageCost& cost : at.costs)
      way += cost.forward + (is_forward_only(at.schedule) ? Seconds{} : cost.input_gradient);
    CAPTURE(to_string(at.schedule));
    REQUIRE(timeline.length >= way);
    for (const Seconds& busy : busy_per_rank(timeline))
      REQUIRE(timeline.length >= busy);
  }
}

TEST_CASE("Simulating the same scenario twice has the same result", "[sim][simulate]") {
  std::mt19937 random(13);
  for (int round = 0; round < 50; ++round) {
    const RandomCase at = random_case(random);
    CHECK(timeline_of(at.schedule, at.costs, at.cluster) ==
          timeline_of(at.schedule, at.costs, at.cluster));
  }
}

TEST_CASE("A timeline has one span per instruction, in listed order in every row",
          "[sim][simulate]") {
  const Program program = lower(make_1f1b(3, 5));
  const Timeline timeline =
      completed(simulate(program, equal_stages(3, times(1, 2, 3)), linked(0.5)));
  std::size_t at = 0;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    for (const Instruction& instruction : program.ranks[rank]) {
      REQUIRE(timeline.spans[at].rank == static_cast<int>(rank));
      REQUIRE(timeline.spans[at].row == row_of(instruction.kind));
      REQUIRE(timeline.spans[at].action == to_string(instruction));
      ++at;
    }
  CHECK(at == timeline.spans.size());
  CHECK(timeline.ranks == 3);
  CHECK(timeline.name == "predicted");
}

TEST_CASE("Memory over time, by hand: two ranks and one microbatch", "[sim][memory]") {
  auto costs = equal_stages(2, times(1, 1, 1));
  costs[0].parameters = {10};
  costs[0].gradients = {10};
  costs[0].optimizer_state = {20};
  costs[0].loaded = {3};
  costs[0].activation = {7};
  costs[0].forward_peak = {9};
  costs[0].backward_peak = {4};
  costs[1].parameters = {6};
  costs[1].gradients = {6};
  costs[1].optimizer_state = {12};
  costs[1].loaded = {2};
  costs[1].activation = {5};
  costs[1].forward_peak = {6};
  costs[1].backward_peak = {8};
  costs[1].input_gradient_bytes = {13};
  const Timeline timeline = timeline_of(make_gpipe(2, 1), costs, linked(0));

  // 40 bytes are permanent. 0F0 needs its input and 9 while it runs, keeps 7; 0B0 needs 4 more.
  CHECK(memory_of(timeline, 0) == "0: 52, 1: 50, 4: 54, 6: 40");
  // 24 bytes are permanent. The target is loaded at once; 1F0 needs 6, keeps 5; 1B0 follows at 2
  // and needs 8 more. The gradient that it computed stays until 0B0 has used it.
  CHECK(memory_of(timeline, 1) == "0: 26, 1: 32, 2: 39, 4: 37, 6: 24");
  CHECK(peak_per_rank(timeline) == std::vector<Bytes>{{54}, {39}});
}

TEST_CASE("Memory starts and ends with the permanent memory", "[sim][memory]") {
  std::mt19937 random(17);
  for (int round = 0; round < 200; ++round) {
    RandomCase at = random_case(random);
    for (StageCost& cost : at.costs) {
      cost.parameters = {pick(random, 0, 9)};
      cost.gradients = cost.parameters;
      cost.optimizer_state = cost.parameters * 2;
      cost.activation = {pick(random, 0, 9)};
      cost.forward_peak = cost.activation + Bytes{pick(random, 0, 9)};
      cost.backward_peak = {pick(random, 0, 9)};
    }
    at.costs.front().input_gradient_bytes = {};  // no stage would use it
    at.costs.front().loaded = {7};
    at.costs.back().loaded = {5};
    const Timeline timeline = timeline_of(at.schedule, at.costs, at.cluster);
    CAPTURE(to_string(at.schedule));
    for (int rank = 0; rank < timeline.ranks; ++rank) {
      Bytes standing;
      for (int stage = 0; stage < stage_count(at.schedule); ++stage)
        if (placement_of(at.schedule).holds(rank, stage))
          standing += at.costs[static_cast<std::size_t>(stage)].parameters * 4;
      std::vector<MemorySample> samples;
      std::copy_if(timeline.memory.begin(), timeline.memory.end(), std::back_inserter(samples),
                   [&](const MemorySample& sample) { return sample.rank == rank; });
      REQUIRE(samples.front() == MemorySample{rank, Seconds{0}, standing});
      REQUIRE(samples.back().held == standing);
      REQUIRE(std::is_sorted(
          samples.begin(), samples.end(),
          [](const MemorySample& a, const MemorySample& b) { return a.time < b.time; }));
    }
  }
}

TEST_CASE("A split backward keeps the activations until the weight gradient has ended",
          "[sim][memory]") {
  StageCost cost = times(1, 1, 1);
  cost.activation = {7};
  cost.forward_peak = {7};
  cost.input_gradient_peak = cost.weight_gradient_peak = {2};
  const Timeline timeline = timeline_of(parse_csv("0F0,0I0,0W0\n", "s.csv"), {cost}, linked(0));
  CHECK(memory_of(timeline, 0) == "0: 7, 1: 9, 2: 9, 3: 0");
}

TEST_CASE("Costs for another number of stages are rejected", "[sim][simulate]") {
  CHECK(error_of([] {
          simulate(lower(make_gpipe(2, 1)), equal_stages(3, times(1, 1, 1)), linked(0));
        }) == "costs are given for 3 stages, but the program has 2");
}

}  // namespace simulate_test
