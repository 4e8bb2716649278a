#include "pipewright/plan/program/deadlock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/lower/program_csv.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace deadlock_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

constexpr auto all_layouts = {CommunicatorLayout::Edge, CommunicatorLayout::Pair,
                              CommunicatorLayout::Rank};
constexpr auto all_modes = {TransferMode::Rendezvous, TransferMode::Eager};

/// Returns the layouts under which a Program runs to its end, with rendezvous | with eager
/// transfers: "edge pair rank". Dashes replace a layout under which it does not.
std::string where_it_runs(const Program& program) {
  std::string text;
  for (const TransferMode mode : all_modes) {
    text += text.empty() ? "" : " | ";
    for (const CommunicatorLayout layout : all_layouts) {
      const bool runs = !find_deadlock(program, layout, mode);
      text += (layout == CommunicatorLayout::Edge ? "" : " ") +
              (runs ? to_string(layout) : std::string(4, '-'));
    }
  }
  return text;
}

std::string where_it_runs(const std::string& name, int ranks, int microbatches,
                          ReceivePlacement receives = ReceivePlacement::JustInTime) {
  return where_it_runs(lower(make_schedule(name, ranks, microbatches), {.receives = receives}));
}

/// Returns the text of a deadlock, or "none".
std::string cycle_of(const Program& program, CommunicatorLayout layout, TransferMode mode) {
  return find_deadlock(program, layout, mode).value_or("none");
}

/// Runs a Program by the rules, in turns, until nothing can advance. It does not use the graph:
///   - a rank's computations run in listed order, and when blocking, so do its transfers;
///   - a transfer or reduction is issued once the computations listed before it have run;
///   - on each queue of a rank, transfers are started in listed order;
///   - by rendezvous both ends of a transfer start together; an eager send needs no receiver, and
///     its receive ends after it;
///   - a reduction ends when it is issued on all its ranks, and a stage's step comes after it.
class Interpreter {
 public:
  explicit Interpreter(const Program& program) : program_(program) {
    for (const auto& list : program.ranks)
      done_.emplace_back(list.size(), 0);
    for (std::size_t rank = 0; rank < done_.size(); ++rank)
      for (std::size_t at = 0; at < done_[rank].size(); ++at)
        place_[key_of(program.ranks[rank][at])].push_back({rank, at});
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < done_.size(); ++rank)
        for (std::size_t at = 0; at < done_[rank].size(); ++at)
          if (done_[rank][at] == 0 && may_end({rank, at})) {
            done_[rank][at] = 1;
            moved = true;
          }
    }
  }

  bool is_done(std::size_t rank, std::size_t at) const { return done_[rank][at] != 0; }

  /// Returns true if everything before it in its list (its rank's computations, or its queue) has
  /// run.
  bool heads_its_list(std::size_t rank, std::size_t at) const {
    const auto& list = program_.ranks[rank];
    if (is_transfer(list[at]))
      return heads_its_queue({rank, at});
    if (is_collective(list[at].kind))
      return collectives_are_done({rank, at});
    for (std::size_t before = 0; before < at && is_compute(list[at].kind); ++before)
      if (is_compute(list[before].kind) && !is_done(rank, before))
        return false;
    return true;
  }

  bool ran_to_its_end() const {
    return std::all_of(done_.begin(), done_.end(), [](const std::vector<char>& list) {
      return std::find(list.begin(), list.end(), 0) == list.end();
    });
  }

 private:
  struct Place {
    std::size_t rank;
    std::size_t at;
  };

  const Instruction& instruction(Place p) const { return program_.ranks[p.rank][p.at]; }

  bool is_transfer(const Instruction& i) const { return is_send(i.kind) || is_receive(i.kind); }

  std::pair<int, bool> queue(const Instruction& transfer) const {
    const int peer = peer_rank(program_, transfer);
    switch (program_.communicators) {
      case CommunicatorLayout::Edge:
        return {peer, is_send(transfer.kind)};
      case CommunicatorLayout::Pair:
        return {peer, false};
      case CommunicatorLayout::Rank:
        return {0, false};
    }
    return {};
  }

  bool is_issued(Place p) const {
    for (std::size_t before = 0; before < p.at; ++before) {
      const Instruction& i = instruction({p.rank, before});
      const bool holds_the_rank = is_compute(i.kind) || (program_.blocking && is_transfer(i));
      if (holds_the_rank && !is_done(p.rank, before))
        return false;
    }
    return true;
  }

  bool heads_its_queue(Place p) const {
    for (std::size_t before = 0; before < p.at; ++before) {
      const Instruction& i = instruction({p.rank, before});
      if (is_transfer(i) && queue(i) == queue(instruction(p)) && !is_done(p.rank, before))
        return false;
    }
    return true;
  }

  bool may_start(Place p) const { return is_issued(p) && heads_its_queue(p); }

  bool is_done(const Instruction& i) const {
    const Place p = place_.at(key_of(i)).front();
    return is_done(p.rank, p.at);
  }

  bool may_end(Place p) const {
    const Instruction& i = instruction(p);
    if (is_transfer(i)) {
      const Place other = place_.at(key_of(counterpart(i))).front();
      if (program_.transfers == TransferMode::Rendezvous)
        return may_start(p) && (may_start(other) || is_done(other.rank, other.at));
      return may_start(p) && (is_send(i.kind) || is_done(other.rank, other.at));
    }
    if (is_collective(i.kind))
      return all_issued(i);
    return is_issued(p) && has_data(i) && reductions_are_done(p);
  }

  /// Returns true if it is issued on all its ranks, including the other stages of a tied weight,
  /// and the collectives before it are done.
  bool all_issued(const Instruction& reduction) const {
    for (const auto& [key, places] : place_)
      for (const Place& p : places) {
        const Instruction& other = instruction(p);
        const bool together =
            other.kind == reduction.kind &&
            (other.stage == reduction.stage || reduction.kind == InstructionKind::ReduceTied);
        if (together && !(is_issued(p) && collectives_are_done(p)))
          return false;
      }
    return true;
  }

  bool has_data(const Instruction& i) const {
    const auto received = [&](InstructionKind receive) {
      const auto found = place_.find({receive, i.stage, i.microbatch});
      return found == place_.end() || is_done(found->second.front().rank, found->second.front().at);
    };
    if (i.kind == InstructionKind::Forward)
      return received(InstructionKind::ReceiveActivation);
    if (i.kind == InstructionKind::Backward || i.kind == InstructionKind::InputGradient)
      return received(InstructionKind::ReceiveGradient);
    return true;
  }

  bool collectives_are_done(Place p) const {
    for (std::size_t before = 0; before < p.at; ++before)
      if (is_collective(instruction({p.rank, before}).kind) && !is_done(p.rank, before))
        return false;
    return true;
  }

  bool reductions_are_done(Place p) const {
    return instruction(p).kind != InstructionKind::OptimizerStep || collectives_are_done(p);
  }

  const Program& program_;
  std::vector<std::vector<char>> done_;
  std::map<InstructionKey, std::vector<Place>> place_;
};

int below(std::mt19937& random, int count) {
  return static_cast<int>(random() % static_cast<unsigned>(count));
}

/// Makes a schedule from any order in which a single worker could run everything, divided among the
/// ranks. It is always valid.
Schedule random_schedule(std::mt19937& random) {
  const int ranks = 2 + below(random, 3), stages = ranks + below(random, 3);
  const int microbatches = 1 + below(random, 4);
  std::vector<int> rank_of_stage;
  for (int stage = 0; stage < stages; ++stage)
    rank_of_stage.push_back(stage < ranks ? stage : below(random, ranks));
  std::shuffle(rank_of_stage.begin(), rank_of_stage.end(), random);
  const bool split = below(random, 2) == 0;

  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  schedule.ranks.resize(static_cast<std::size_t>(ranks));
  // Progress of each microbatch: forwards down, then backwards up.
  std::vector<int> steps(static_cast<std::size_t>(microbatches), 0);
  std::vector<Action> weights;  // pending weight gradients
  const auto place = [&](const Action& action) {
    schedule.ranks[static_cast<std::size_t>(rank_of_stage[static_cast<std::size_t>(action.stage)])]
        .push_back(action);
  };
  for (int left = 2 * stages * microbatches; left > 0;) {
    const int m = below(random, microbatches);
    int& step = steps[static_cast<std::size_t>(m)];
    if (step == 2 * stages)
      continue;
    const bool forward = step < stages;
    const int stage = forward ? step : 2 * stages - 1 - step;
    const auto backward = split ? ActionKind::InputGradient : ActionKind::Backward;
    place({forward ? ActionKind::Forward : backward, stage, m});
    if (!forward && split)
      weights.push_back({ActionKind::WeightGradient, stage, m});
    ++step;
    --left;
    while (!weights.empty() && below(random, 3) == 0) {
      place(weights.front());
      weights.erase(weights.begin());
    }
  }
  for (const Action& weight : weights)
    place(weight);
  return schedule;
}

/// Moves transfers to other positions, but no receive after the use of its data and no send before
/// its data is produced.
void shuffle_transfers(Program& program, std::mt19937& random) {
  const auto touches = [](const Instruction& a, const Instruction& b) {
    return a.microbatch >= 0 && a.stage == b.stage && a.microbatch == b.microbatch;
  };
  for (auto& list : program.ranks)
    for (int moves = below(random, 40); moves > 0; --moves) {
      const auto at = static_cast<std::size_t>(below(random, static_cast<int>(list.size())));
      const auto with = at + 1;
      if (with == list.size() || touches(list[at], list[with]))
        continue;
      const auto moves_freely = [](const Instruction& i) {
        return is_send(i.kind) || is_receive(i.kind);
      };
      if (moves_freely(list[at]) || moves_freely(list[with]))
        std::swap(list[at], list[with]);
    }
}

Program random_program(std::mt19937& random) {
  LoweringOptions options;
  options.blocking = below(random, 4) == 0;
  if (below(random, 3) == 0)
    options.receives = ReceivePlacement::WithSend;
  if (below(random, 3) == 0)
    options.replicas = 2;
  const Schedule schedule = random_schedule(random);
  if (below(random, 3) == 0)
    options.tied_stages = {0, stage_count(schedule) - 1};
  Program program = lower(schedule, options);
  if (below(random, 4) != 0)
    shuffle_transfers(program, random);
  return program;
}

/// Returns the parts "rank 0 at 0SEND_F1" of a deadlock's text.
std::vector<std::pair<int, Instruction>> stops_in(const std::string& words) {
  std::vector<std::pair<int, Instruction>> stops;
  std::size_t at = words.find("deadlock: ") + std::string("deadlock: ").size();
  while (true) {
    const std::string part = words.substr(at, words.find("; ", at) - at);
    const auto rank = part.find("rank "), where = part.find(" at "), end = part.find(" waits for ");
    REQUIRE(rank == 0);
    REQUIRE(where != std::string::npos);
    REQUIRE(end != std::string::npos);
    const auto instruction = parse_instruction(part.substr(where + 4, end - where - 4));
    REQUIRE(instruction.has_value());
    stops.push_back({std::stoi(part.substr(5)), *instruction});
    const auto next = words.find("; ", at);
    if (next == std::string::npos)
      return stops;
    at = next + 2;
  }
}

TEST_CASE("Schedules run under the expected communicators, with rendezvous and eager transfers",
          "[plan][deadlock]") {
  // One direction at a time never deadlocks.
  const std::string everywhere = "edge pair rank | edge pair rank";
  // In steady 1F1B, the next activation and the last gradient are sent in opposite directions at
  // the same time.
  const std::string by_direction = "edge ---- ---- | edge pair rank";
  const std::set<std::string> one_way{"gpipe", "looped-bfs", "inference", "deepspeed-inference",
                                      "data-parallel"};
  for (const std::string& name : schedule_names()) {
    CAPTURE(name);
    CHECK(where_it_runs(name, 4, 8) == (one_way.contains(name) ? everywhere : by_direction));
  }
}

TEST_CASE("Chunks in a loop close a ring of ranks, and with two ranks both directions are one pair",
          "[plan][deadlock]") {
  // Every rank sends to the next rank before it receives from the previous one.
  CHECK(where_it_runs(lower(make_looped_bfs(4, 8, 2))) == "edge pair ---- | edge pair rank");
  CHECK(where_it_runs(lower(make_inference(4, 8, 2))) == "edge pair ---- | edge pair rank");
  CHECK(where_it_runs(lower(make_looped_bfs(2, 4, 2))) == "edge ---- ---- | edge pair rank");
  CHECK(where_it_runs(lower(make_inference(2, 4, 2))) == "edge ---- ---- | edge pair rank");
  CHECK(where_it_runs(lower(make_interleaved_1f1b(4, 8, 2))) == "edge ---- ---- | edge pair rank");
  CHECK(where_it_runs(lower(make_interleaved_zb(4, 8, 2))) == "edge ---- ---- | edge pair rank");
  // Rank 0 sends to rank 1 the activations of stage 0 and the gradients of stage 2.
  CHECK(where_it_runs(lower(make_interleaved_zb(2, 4, 2))) == "edge ---- ---- | edge pair rank");
  CHECK(where_it_runs(lower(make_hanayo(4, 8, 2))) == "edge ---- ---- | edge pair rank");
}

TEST_CASE("Eager transfers with receives directly before their use never deadlock",
          "[plan][deadlock]") {
  for (const std::string& name : schedule_names())
    for (const int ranks : {2, 4, 6})
      for (const bool blocking : {false, true}) {
        Program program = lower(make_schedule(name, ranks, 12));
        program.blocking = blocking;
        CAPTURE(name, ranks, blocking);
        for (const CommunicatorLayout layout : all_layouts)
          CHECK(cycle_of(program, layout, TransferMode::Eager) == "none");
      }
}

TEST_CASE("Receives placed where the sender sends never deadlock, even in one queue per rank",
          "[plan][deadlock]") {
  for (const std::string& name : schedule_names())
    for (const int ranks : {2, 4, 6}) {
      CAPTURE(name, ranks);
      CHECK(where_it_runs(name, ranks, 12, ReceivePlacement::WithSend) ==
            "edge pair rank | edge pair rank");
    }
}

TEST_CASE("1F1B by rendezvous in one queue per pair deadlocks: both ranks send, none receives",
          "[plan][deadlock]") {
  const Program program = lower(make_1f1b(2, 2));
  const std::string both_send =
      "deadlock: rank 0 at 0SEND_F1 waits for 1RECV_F1, which rank 1 runs after 1SEND_B0; rank 1 "
      "at 1SEND_B0 waits for 0RECV_B0, which rank 0 runs after 0SEND_F1";
  CHECK(cycle_of(program, CommunicatorLayout::Pair, TransferMode::Rendezvous) == both_send);
  CHECK(cycle_of(program, CommunicatorLayout::Rank, TransferMode::Rendezvous) == both_send);
  CHECK(cycle_of(program, CommunicatorLayout::Edge, TransferMode::Rendezvous) == "none");
  CHECK(cycle_of(lower(make_1f1b(2, 1)), CommunicatorLayout::Rank, TransferMode::Rendezvous) ==
        "none");  // one microbatch passes down and up
}

TEST_CASE("Blocking transfers deadlock as one queue does", "[plan][deadlock]") {
  Program program = lower(make_1f1b(2, 2));
  program.blocking = true;
  CHECK(cycle_of(program, CommunicatorLayout::Edge, TransferMode::Rendezvous) ==
        "deadlock: rank 0 at 0SEND_F1 waits for 1RECV_F1, which rank 1 runs after 1SEND_B0; rank 1 "
        "at 1SEND_B0 waits for 0RECV_B0, which rank 0 runs after 0SEND_F1");
}

TEST_CASE("The shortest of several cycles is the one shown", "[plan][deadlock]") {
  // Rank 0 is also stuck because it waits for rank 1; ranks 1 and 2 wait for each other.
  CHECK(cycle_of(lower(make_1f1b(3, 3)), CommunicatorLayout::Rank, TransferMode::Rendezvous) ==
        "deadlock: rank 1 at 1SEND_F1 waits for 2RECV_F1, which rank 2 runs after 2SEND_B0; rank 2 "
        "at 2SEND_B0 waits for 1RECV_B0, which rank 1 runs after 1SEND_F1");
}

TEST_CASE("Two directions deadlock at once: both ranks send their first microbatch",
          "[plan][deadlock]") {
  CHECK(cycle_of(lower(make_chimera(2, 2)), CommunicatorLayout::Rank, TransferMode::Rendezvous) ==
        "deadlock: rank 0 at 0SEND_F0 waits for 1RECV_F0, which rank 1 runs after 0SEND_F1; rank 1 "
        "at 0SEND_F1 waits for 1RECV_F1, which rank 0 runs after 0SEND_F0");
}

TEST_CASE(
    "If the receive order differs from the send order, one direction is enough for a deadlock",
    "[plan][deadlock]") {
  const Program program = program_from_csv(
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F1,1F1,1RECV_F0,1F0,1B0,1SEND_B0,1B1,1SEND_B1\n",
      "p.csv");
  CHECK(cycle_of(program, CommunicatorLayout::Edge, TransferMode::Rendezvous) ==
        "deadlock: rank 0 at 0SEND_F0 waits for 1RECV_F0, which rank 1 runs after 1RECV_F1; rank 1 "
        "at 1RECV_F1 waits for 0SEND_F1, which rank 0 runs after 0SEND_F0");
}

TEST_CASE("A program that runs under other communicators is rejected under its own",
          "[plan][deadlock]") {
  LoweringOptions options{.communicators = CommunicatorLayout::Rank,
                          .transfers = TransferMode::Rendezvous};
  CHECK(error_of([&] { validate(lower(make_1f1b(2, 2), options)); }) ==
        "deadlock: rank 0 at 0SEND_F1 waits for 1RECV_F1, which rank 1 runs after 1SEND_B0; rank 1 "
        "at 1SEND_B0 waits for 0RECV_B0, which rank 0 runs after 0SEND_F1");
  CHECK(error_of([&] {
          validate(lower(make_1f1b(2, 2), options), CommunicatorLayout::Edge, TransferMode::Eager);
        }) == "no error");
  options.communicators = CommunicatorLayout::Edge;
  CHECK(error_of([&] { validate(lower(make_1f1b(2, 2), options)); }) == "no error");
}

TEST_CASE("A reduction that a rank reaches too late delays the others' steps", "[plan][deadlock]") {
  // Rank 0 reduces and steps before microbatch 1, whose forward rank 1 needs before it reduces.
  Program program;
  program.microbatches = 2;
  program.placement = one_route({0, 1});
  for (const std::vector<std::string>& line :
       std::vector<std::vector<std::string>>{{"0F0", "0SEND_F0", "0RECV_B0", "0B0", "0REDUCE_TIED",
                                              "0STEP", "0F1", "0SEND_F1", "0RECV_B1", "0B1"},
                                             {"1RECV_F0", "1F0", "1B0", "1SEND_B0", "1RECV_F1",
                                              "1F1", "1B1", "1SEND_B1", "1REDUCE_TIED", "1STEP"}}) {
    auto& list = program.ranks.emplace_back();
    for (const std::string& word : line)
      list.push_back(parse_instruction(word).value());
  }
  CHECK(cycle_of(program, CommunicatorLayout::Edge, TransferMode::Eager) ==
        "deadlock: rank 0 at 0STEP waits for 0REDUCE_TIED; rank 0 at 0REDUCE_TIED waits for 1B1, "
        "which rank 1 runs after 1F1; rank 1 at 1F1 waits for 1RECV_F1; rank 1 at 1RECV_F1 waits "
        "for 0SEND_F1; rank 0 at 0SEND_F1 waits for 0F1, which rank 0 runs after 0STEP");
  CHECK_FALSE(Interpreter(program).ran_to_its_end());
}

TEST_CASE("A deadlock is found exactly if an interpreter gets stuck, for random programs",
          "[plan][deadlock]") {
  std::mt19937 random(20240607);
  int stuck = 0, ran = 0;
  for (int round = 0; round < 400; ++round) {
    Program program = random_program(random);
    for (const TransferMode mode : all_modes)
      for (const CommunicatorLayout layout : all_layouts) {
        program.transfers = mode;
        program.communicators = layout;
        const Interpreter interpreter(program);
        const std::string words = cycle_of(program, layout, mode);
        CAPTURE(round, to_string(mode), to_string(layout), program.blocking, to_csv(program));
        REQUIRE((words == "none") == interpreter.ran_to_its_end());
        (words == "none" ? ran : stuck)++;
      }
  }
  CHECK(stuck > 400);
  CHECK(ran > 400);
  fmt::print("deadlocks: {} of {} random programs\n", stuck, stuck + ran);
}

TEST_CASE("A deadlock names instructions that could not run, each at the head of its list",
          "[plan][deadlock]") {
  std::mt19937 random(77);
  int named = 0;
  for (int round = 0; round < 200; ++round) {
    Program program = random_program(random);
    for (const TransferMode mode : all_modes)
      for (const CommunicatorLayout layout : all_layouts) {
        program.transfers = mode;
        program.communicators = layout;
        const auto words = find_deadlock(program, layout, mode);
        if (!words)
          continue;
        const Interpreter interpreter(program);
        CAPTURE(round, *words, to_csv(program));
        std::set<std::string> seen;
        for (const auto& [rank, instruction] : stops_in(*words)) {
          const auto& list = program.ranks[static_cast<std::size_t>(rank)];
          const auto found = std::find_if(list.begin(), list.end(), [&](const Instruction& i) {
            return key_of(i) == key_of(instruction);
          });
          REQUIRE(found != list.end());
          const auto at = static_cast<std::size_t>(found - list.begin());
          REQUIRE_FALSE(interpreter.is_done(static_cast<std::size_t>(rank), at));
          REQUIRE(interpreter.heads_its_list(static_cast<std::size_t>(rank), at));
          REQUIRE(seen.insert(fmt::format("{} {}", rank, to_string(instruction))).second);
          ++named;
        }
      }
  }
  CHECK(named > 100);
}

}  // namespace deadlock_test
