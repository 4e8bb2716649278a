#include "pipewright/plan/lower/lower.hpp"

#include <algorithm>
#include <map>

#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/program_csv.hpp"
#include "pipewright/plan/program/program_counts.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace lower_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

/// Returns one line per rank, without slots.
std::string text_of(const Program& program) {
  std::string text;
  for (const auto& instructions : program.ranks) {
    std::string line;
    for (const Instruction& i : instructions)
      line += (line.empty() ? "" : " ") + to_string(i);
    text += line + "\n";
  }
  return text;
}

/// Stages 0 and 3 on rank 0, stages 1 and 2 on rank 1.
Schedule v_of_two() { return parse_csv("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", "v.csv"); }

Program bare(const Schedule& schedule) { return from_schedule(schedule, {}); }

/// Returns the slot of each instruction with a microbatch, in list order.
std::vector<int> slots_of(const std::vector<Instruction>& instructions) {
  std::vector<int> slots;
  for (const Instruction& i : instructions)
    slots.push_back(i.slot);
  return slots;
}

TEST_CASE("from_schedule takes over the actions and the options, nothing else", "[plan][lower]") {
  const Program program = from_schedule(parse_csv("0F0,0R0,0I0,0W0\n1F0,1B0\n", "s.csv"),
                                        {.communicators = CommunicatorLayout::Pair,
                                         .transfers = TransferMode::Rendezvous,
                                         .blocking = true});
  CHECK(text_of(program) ==
        "0F0 0R0 0I0 0W0\n"
        "1F0 1B0\n");
  CHECK(program.microbatches == 1);
  CHECK(program.placement == one_route({0, 1}));
  CHECK(program.communicators == CommunicatorLayout::Pair);
  CHECK(program.transfers == TransferMode::Rendezvous);
  CHECK(program.blocking);
}

TEST_CASE("Transfers: a send directly after its producer, a receive directly before its consumer",
          "[plan][lower]") {
  CHECK(text_of(with_transfers(bare(make_gpipe(3, 1)))) ==
        "0F0 0SEND_F0 0RECV_B0 0B0\n"
        "1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0\n"
        "2RECV_F0 2F0 2B0 2SEND_B0\n");
}

TEST_CASE("Transfers: a split backward sends its input gradient before the weight gradient",
          "[plan][lower]") {
  CHECK(text_of(with_transfers(bare(parse_csv("0F0,0I0,0W0\n1F0,1I0,1W0\n", "s.csv")))) ==
        "0F0 0SEND_F0 0RECV_B0 0I0 0W0\n"
        "1RECV_F0 1F0 1I0 1SEND_B0 1W0\n");
}

TEST_CASE("Transfers: none between stages of one rank", "[plan][lower]") {
  CHECK(text_of(with_transfers(bare(v_of_two()))) ==
        "0F0 0SEND_F0 3RECV_F0 3F0 3B0 3SEND_B0 0RECV_B0 0B0\n"
        "1RECV_F0 1F0 2F0 2SEND_F0 2RECV_B0 2B0 1B0 1SEND_B0\n");
  CHECK(text_of(with_transfers(bare(parse_csv("0F0,1F0,1B0,0B0\n", "s.csv")))) ==
        "0F0 1F0 1B0 0B0\n");
}

TEST_CASE("Loads: the first stage's input and the last stage's target, directly before the forward",
          "[plan][lower]") {
  CHECK(text_of(with_loads(bare(make_gpipe(3, 2)))) ==
        "0LOAD0 0F0 0LOAD1 0F1 0B0 0B1\n"
        "1F0 1F1 1B0 1B1\n"
        "2LOAD0 2F0 2LOAD1 2F1 2B0 2B1\n");
  CHECK(text_of(with_loads(bare(make_gpipe(1, 1)))) == "0LOAD0 0F0 0B0\n");  // once, for both
}

TEST_CASE("Optimizer steps: one per stage, at the end of its rank's list", "[plan][lower]") {
  CHECK(text_of(with_optimizer_steps(bare(v_of_two()))) ==
        "0F0 3F0 3B0 0B0 0STEP 3STEP\n"
        "1F0 2F0 2B0 1B0 1STEP 2STEP\n");
}

TEST_CASE("Slots: the lowest slot that is free from first to last use", "[plan][lower]") {
  const Program program = with_slots(bare(parse_csv("0F0,0F1,0B0,0F2,0B2,0B1\n", "s.csv")));
  CHECK(slots_of(program.ranks[0]) == std::vector<int>{0, 1, 0, 0, 0, 1});
}

TEST_CASE("Slots: each stage counts its own, and a step has none", "[plan][lower]") {
  const Program program = with_slots(with_optimizer_steps(bare(v_of_two())));
  CHECK(slots_of(program.ranks[0]) == std::vector<int>{0, 0, 0, 0, -1, -1});
  CHECK(slot_counts(program) == std::vector<int>{1, 1, 1, 1});
}

TEST_CASE("1F1B holds min(M, P - r) microbatches on rank r, GPipe all", "[plan][lower]") {
  for (const int stages : {1, 2, 3, 4, 6, 8, 16})
    for (const int microbatches : {1, 2, 3, 4, 7, 16, 32}) {
      std::vector<int> least;
      for (int rank = 0; rank < stages; ++rank)
        least.push_back(std::min(microbatches, stages - rank));
      CAPTURE(stages, microbatches);
      CHECK(slot_counts(lower(make_1f1b(stages, microbatches))) == least);
      CHECK(slot_counts(lower(make_gpipe(stages, microbatches))) ==
            std::vector<int>(least.size(), microbatches));
    }
}

TEST_CASE("A lowered program is all passes in their order", "[plan][lower]") {
  const Program program = lower(v_of_two());
  CHECK(text_of(program) ==
        "0LOAD0 0F0 0SEND_F0 3RECV_F0 3LOAD0 3F0 3B0 3SEND_B0 0RECV_B0 0B0 0STEP 3STEP\n"
        "1RECV_F0 1F0 2F0 2SEND_F0 2RECV_B0 2B0 1B0 1SEND_B0 1STEP 2STEP\n");
  CHECK(error_of([&] { validate(program); }) == "no error");
}

TEST_CASE("Every trained stage steps once at the end on every rank that holds it",
          "[plan][lower]") {
  for (const std::string& name : schedule_names()) {
    const Program program = lower(make_schedule(name, 4, 8));
    const bool learns = name.find("inference") == std::string::npos;
    for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
      const auto& instructions = program.ranks[rank];
      const auto steps = std::count_if(
          instructions.begin(), instructions.end(),
          [](const Instruction& i) { return i.kind == InstructionKind::OptimizerStep; });
      int held = 0;
      for (int stage = 0; stage < stage_count(program); ++stage)
        held += program.placement.holds(static_cast<int>(rank), stage);
      CAPTURE(name, rank);
      CHECK(steps == (learns ? held : 0));
      CHECK((instructions.back().kind == InstructionKind::OptimizerStep) == learns);
    }
  }
}

TEST_CASE("A schedule that cannot run is rejected", "[plan][lower]") {
  CHECK(error_of([] { lower(parse_csv("0B0,0F0\n", "s.csv")); }) ==
        "deadlock: rank 0 at 0B0 waits for 0F0, which rank 0 runs after 0B0");
}

TEST_CASE("Reductions: directly after the last weight gradient of each stage", "[plan][lower]") {
  const auto reduced = [](const char* csv) {
    return text_of(with_reductions(bare(parse_csv(csv, "s.csv")), {.replicas = 2}));
  };
  CHECK(reduced("0F0,0F1,0B0,0B1\n") == "0F0 0F1 0B0 0B1 0REDUCE_GRAD\n");
  CHECK(reduced("0F0,0F1,0I0,0I1,0W1,0W0\n") == "0F0 0F1 0I0 0I1 0W1 0W0 0REDUCE_GRAD\n");
  CHECK(reduced("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n") ==
        "0F0 3F0 3B0 3REDUCE_GRAD 0B0 0REDUCE_GRAD\n"
        "1F0 2F0 2B0 2REDUCE_GRAD 1B0 1REDUCE_GRAD\n");
  CHECK(reduced("0F0,0F1\n") == "0F0 0F1\n");  // inference
}

TEST_CASE("Reductions: after a fused pair, not between its actions", "[plan][lower]") {
  const Schedule schedule = parse_csv(
      "0F0,0F1,0B0,0B1,0F2,0B2\n1F0,1F1,(1B0;1F2)OVERLAP_F_B,(1B1;1B2)OVERLAP_F_B\n", "s");
  CHECK(to_csv(with_reductions(bare(schedule), {.replicas = 2})) ==
        "0F0,0F1,0B0,0B1,0F2,0B2,0REDUCE_GRAD\n"
        "1F0,1F1,(1B0;1F2)OVERLAP_F_B,(1B1;1B2)OVERLAP_F_B,1REDUCE_GRAD\n");
  // The last backward is the first action of its pair.
  const Schedule first = parse_csv("0F0,1F0,0F1,1F1,1B0,0B0,(1B1;0F2)OVERLAP_F_B,0B1,0B2\n", "s");
  CHECK(to_csv(with_reductions(bare(first), {.replicas = 2})) ==
        "0F0,1F0,0F1,1F1,1B0,0B0,(1B1;0F2)OVERLAP_F_B,1REDUCE_GRAD,0B1,0B2,0REDUCE_GRAD\n");
}

TEST_CASE("Reductions: after the send of that backward, because another rank waits for it",
          "[plan][lower]") {
  CHECK(text_of(lower(make_gpipe(2, 1), {.replicas = 2, .tied_stages = {0, 1}})) ==
        "0LOAD0 0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_TIED 0REDUCE_GRAD 0STEP\n"
        "1RECV_F0 1LOAD0 1F0 1B0 1SEND_B0 1REDUCE_TIED 1REDUCE_GRAD 1STEP\n");
}

TEST_CASE(
    "A Program has the instructions for a sharded optimizer, a norm, a loss and recomputation",
    "[plan][lower]") {
  const auto lowered = [](bool shard, bool norm) {
    return text_of(lower(make_gpipe(2, 1), {.replicas = 2,
                                            .recompute = RecomputeMode::Full,
                                            .zero = shard,
                                            .gradient_norm = norm,
                                            .share_loss = true}));
  };
  CHECK(lowered(true, false) ==
        "0LOAD0 0F0 0SEND_F0 0R0 0RECV_B0 0B0 0REDUCE_SCATTER 0STEP 0GATHER 0LOSS\n"
        "1RECV_F0 1LOAD0 1F0 1R0 1B0 1SEND_B0 1REDUCE_SCATTER 1STEP 1GATHER 1LOSS\n");
  CHECK(lowered(true, true) ==
        "0LOAD0 0F0 0SEND_F0 0R0 0RECV_B0 0B0 0REDUCE_SCATTER 0NORM 0STEP 0GATHER 0LOSS\n"
        "1RECV_F0 1LOAD0 1F0 1R0 1B0 1SEND_B0 1REDUCE_SCATTER 1NORM 1STEP 1GATHER 1LOSS\n");
  CHECK(lowered(false, true) ==
        "0LOAD0 0F0 0SEND_F0 0R0 0RECV_B0 0B0 0REDUCE_GRAD 0NORM 0STEP 0LOSS\n"
        "1RECV_F0 1LOAD0 1F0 1R0 1B0 1SEND_B0 1REDUCE_GRAD 1NORM 1STEP 1LOSS\n");
  // With one copy there is nothing to reduce or gather.
  CHECK(text_of(lower(parse_csv("0F0,0B0\n", "s.csv"), {.zero = 1})) == "0LOAD0 0F0 0B0 0STEP\n");
}

TEST_CASE("Sharded gradients are reduced after each backward and its send", "[plan][lower]") {
  CHECK(text_of(lower(make_gpipe(2, 2), {.replicas = 2, .zero = 2})) ==
        "0LOAD0 0F0 0SEND_F0 0LOAD1 0F1 0SEND_F1 0RECV_B0 0B0 0SCATTER0 0RECV_B1 0B1 0SCATTER1 "
        "0STEP 0GATHER\n"
        "1RECV_F0 1LOAD0 1F0 1RECV_F1 1LOAD1 1F1 1B0 1SEND_B0 1SCATTER0 1B1 1SEND_B1 1SCATTER1 "
        "1STEP 1GATHER\n");
  // After W for split backwards, after both actions of fused pairs, and before the reduction of a
  // tied weight.
  CHECK(
      text_of(lower(parse_csv("0F0,0F1,0I0,0W0,0I1,0W1\n", "s.csv"), {.replicas = 2, .zero = 2})) ==
      "0LOAD0 0F0 0LOAD1 0F1 0I0 0W0 0SCATTER0 0I1 0W1 0SCATTER1 0STEP 0GATHER\n");
  CHECK(text_of(with_scatters(bare(parse_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n", "s.csv")))) ==
        "0F0 0F1 0B0 0SCATTER0 0B1 0SCATTER1\n");
  CHECK(text_of(lower(make_gpipe(2, 1), {.replicas = 2, .tied_stages = {0, 1}, .zero = 2})) ==
        "0LOAD0 0F0 0SEND_F0 0RECV_B0 0B0 0SCATTER0 0REDUCE_TIED 0STEP 0GATHER\n"
        "1RECV_F0 1LOAD0 1F0 1B0 1SEND_B0 1SCATTER0 1REDUCE_TIED 1STEP 1GATHER\n");
  // With one copy there is no reduction.
  CHECK(text_of(lower(parse_csv("0F0,0B0\n", "s.csv"), {.zero = 2})) == "0LOAD0 0F0 0B0 0STEP\n");
}

TEST_CASE("Sharded parameters are gathered ahead of their use, for a limited number of stages",
          "[plan][lower]") {
  CHECK(text_of(lower(make_gpipe(2, 2), {.replicas = 2, .zero = 3})) ==
        "0UNSHARD 0LOAD0 0F0 0SEND_F0 0LOAD1 0F1 0SEND_F1 0RECV_B0 0B0 0SCATTER0 0RECV_B1 0B1 "
        "0SCATTER1 0RESHARD 0STEP\n"
        "1UNSHARD 1RECV_F0 1LOAD0 1F0 1RECV_F1 1LOAD1 1F1 1B0 1SEND_B0 1SCATTER0 1B1 1SEND_B1 "
        "1SCATTER1 1RESHARD 1STEP\n");
  const auto looped = parse_csv("0F0,1F0,1B0,0B0\n", "s.csv");
  CHECK(text_of(lower(looped, {.replicas = 2, .zero = 3, .whole_stages = 1})) ==
        "0UNSHARD 0LOAD0 0F0 0RESHARD 1UNSHARD 1LOAD0 1F0 1B0 1SCATTER0 1RESHARD 0UNSHARD 0B0 "
        "0SCATTER0 0RESHARD 0STEP 1STEP\n");
  CHECK(text_of(lower(looped, {.replicas = 2, .zero = 3, .whole_stages = 2})) ==
        "0UNSHARD 1UNSHARD 0LOAD0 0F0 1LOAD0 1F0 1B0 1SCATTER0 1RESHARD 0B0 0SCATTER0 "
        "0RESHARD 0STEP 1STEP\n");
}

TEST_CASE("Parameters that are not gathered when a stage computes are rejected", "[plan][lower]") {
  const auto refusal = [](const std::vector<std::string>& list) {
    Program program{.microbatches = 1, .placement = one_route({0}), .ranks = {{}}};
    for (const std::string& text : list)
      program.ranks.front().push_back(*parse_instruction(text));
    return error_of([&] { validate(with_slots(program)); });
  };
  CHECK(refusal({"0UNSHARD", "0LOAD0", "0F0", "0RESHARD", "0UNSHARD", "0B0", "0RESHARD"}) ==
        "no error");
  CHECK(refusal({"0UNSHARD", "0LOAD0", "0F0", "0RESHARD", "0B0"}) ==
        "rank 0, 0B0: needs 0UNSHARD before it");
  CHECK(refusal({"0UNSHARD", "0LOAD0", "0F0", "0UNSHARD", "0B0", "0RESHARD"}) ==
        "rank 0, 0UNSHARD: occurs twice without a RESHARD in between");
  CHECK(refusal({"0UNSHARD", "0LOAD0", "0F0", "0B0"}) ==
        "rank 0, 0UNSHARD: has no RESHARD after it");
  CHECK(refusal({"0LOAD0", "0F0", "0B0", "0RESHARD"}) ==
        "rank 0, 0RESHARD: needs 0UNSHARD before it");
}

TEST_CASE("Options incompatible with sharded gradients are rejected with an alternative",
          "[plan][lower]") {
  const std::string begin =
      "ZeRO stage 2 sums the gradients of each microbatch over the replicas of its stage, ";
  const auto refusal = [](const Schedule& schedule, const LoweringOptions& options) {
    return error_of([&] { lower(schedule, options); });
  };
  CHECK(refusal(make_gpipe(2, 2), {.replicas = 2, .overlap_reductions = false, .zero = 2}) ==
        begin + "and cannot leave all sums to the end (overlap_reductions). Use ZeRO stage 1");
  CHECK(refusal(make_gpipe(2, 2), {.replicas = 2, .step_every = 1, .zero = 2}) ==
        begin + "which is not possible with steps between the backwards. Remove ZeRO");
  ScheduleRequest request;
  request.name = "chimera";
  request.ranks = 2, request.microbatches = 2;
  CHECK(refusal(make_schedule(request), {.zero = 2}) ==
        begin +
            "which must all do the same, but this schedule goes through the stages in 2 "
            "directions. Use ZeRO stage 1");
}

TEST_CASE("A norm is computed after the reductions of all microbatches", "[plan][lower]") {
  CHECK(text_of(lower(make_gpipe(1, 2), {.replicas = 2, .zero = 2, .gradient_norm = true})) ==
        "0LOAD0 0F0 0LOAD1 0F1 0B0 0SCATTER0 0B1 0SCATTER1 0NORM 0STEP 0GATHER\n");
}

TEST_CASE("Every schedule with sharded gradients and parameters can run", "[plan][lower]") {
  int lowered = 0;
  for (const std::string& name : schedule_names())
    for (const int ranks : {1, 2, 4}) {
      ScheduleRequest request;
      request.name = name;
      request.ranks = ranks, request.microbatches = 8;
      std::optional<Program> program;
      try {
        program = lower(make_schedule(request), {.replicas = 3, .zero = 2});
      } catch (const InputError&) {  // other sizes needed, or bidirectional
        continue;
      }
      CAPTURE(name, ranks);
      CHECK_NOTHROW(validate(*program));
      for (const int whole : {1, 3})
        CHECK_NOTHROW(validate(
            lower(make_schedule(request), {.replicas = 3, .zero = 3, .whole_stages = whole})));
      ++lowered;
    }
  CHECK(lowered > 40);
}

TEST_CASE("A Program that reduces some microbatches separately must do so for all",
          "[plan][lower]") {
  Program program = lower(make_gpipe(1, 2), {.replicas = 2, .zero = 2});
  auto& list = program.ranks.front();
  const auto scatter = std::find_if(list.begin(), list.end(), [](const Instruction& i) {
    return i.kind == InstructionKind::ScatterMicrobatch;
  });
  const Instruction first = *scatter;
  list.erase(scatter);
  CHECK(error_of([&] { validate(program); }) ==
        "stage 0: 1 of 2 microbatches have a SCATTER: all must have one, or none");
  list.insert(list.begin() + 1, first);
  CHECK(error_of([&] { validate(program); }) == "rank 0, 0SCATTER0: needs 0B0 before it");
}

TEST_CASE("Reductions: a rank with several stages that share a weight sums it once, before copies",
          "[plan][lower]") {
  const Program program = bare(parse_csv("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", "s.csv"));
  CHECK(text_of(with_reductions(program, {.replicas = 2, .tied_stages = {0, 3}})) ==
        "0F0 3F0 3B0 0B0 0REDUCE_TIED 0REDUCE_GRAD 3REDUCE_GRAD\n"
        "1F0 2F0 2B0 2REDUCE_GRAD 1B0 1REDUCE_GRAD\n");
  // Rank 1 finishes stage 3 early, but its tied weight is complete only when rank 0 is done. Until
  // then, rank 0 reduces what it can.
  const Program early = bare(parse_csv("0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n", "s.csv"));
  CHECK(text_of(with_reductions(early, {.replicas = 2, .tied_stages = {0, 3}})) ==
        "0F0 2F0 2B0 2REDUCE_GRAD 0B0 0REDUCE_TIED 0REDUCE_GRAD\n"
        "1F0 3F0 3B0 3REDUCE_TIED 3REDUCE_GRAD 1B0 1REDUCE_GRAD\n");
}

TEST_CASE("Reductions: common members have them in one order, whatever they compute first",
          "[plan][lower]") {
  // Two routes over two ranks: rank 0 ends with stage 0, with which rank 1 would begin.
  const Schedule schedule = parse_csv("0F0,1F1,1B1,0B0\n1F0,1B0,0F1,0B1\n", "s.csv");
  const Program program = bare(schedule);
  const std::string text = text_of(with_reductions(program, {}));
  CHECK(text ==
        "0F0 1F1 1B1 1REDUCE_GRAD 0B0 0REDUCE_GRAD\n"
        "1F0 1B0 1REDUCE_GRAD 0F1 0B1 0REDUCE_GRAD\n");
  for (const char* const name : {"chimera", "dualpipe"})
    for (const int ranks : {2, 4, 8}) {
      const Program both = lower(make_schedule(name, ranks, 2 * ranks));
      std::map<std::pair<int, int>, std::vector<std::string>> orders;  // for pairs of ranks
      for (int a = 0; a < ranks; ++a)
        for (const Instruction& i : both.ranks[static_cast<std::size_t>(a)])
          if (i.kind == InstructionKind::ReduceGradients)
            for (const int b : both.placement.ranks_of(i.stage))
              orders[{a, b}].push_back(to_string(i));
      for (const auto& [pair, order] : orders)
        CHECK(order == orders.at({pair.second, pair.first}));
    }
}

TEST_CASE("Reductions: none for a single copy", "[plan][lower]") {
  CHECK(with_reductions(bare(make_1f1b(2, 2)), {}) == bare(make_1f1b(2, 2)));
}

TEST_CASE("Reductions: stages on two routes have two copies", "[plan][lower]") {
  CHECK(text_of(with_reductions(bare(make_chimera(2, 2)), {.replicas = 1})) ==
        "0F0 1F1 1B1 1REDUCE_GRAD 0B0 0REDUCE_GRAD\n"
        "0F1 1F0 1B0 1REDUCE_GRAD 0B1 0REDUCE_GRAD\n");
  CHECK(text_of(with_reductions(bare(make_data_parallel(2, 1)), {.replicas = 1})) ==
        "0F0 0B0 0REDUCE_GRAD\n"
        "0F1 0B1 0REDUCE_GRAD\n");
}

TEST_CASE("Reductions: a tied weight is reduced on the stages that share it", "[plan][lower]") {
  const Program program = bare(make_gpipe(3, 1));
  CHECK(text_of(with_reductions(program, {.tied_stages = {0, 2}})) ==
        "0F0 0B0 0REDUCE_TIED\n"
        "1F0 1B0\n"
        "2F0 2B0 2REDUCE_TIED\n");
  CHECK(with_reductions(program, {}) == program);
  CHECK(with_reductions(program, {.tied_stages = {1}}) == program);
  CHECK(error_of([] {
          lower(make_gpipe(3, 1), {.tied_stages = {0, 3}});
        }) == "stage 3 shares a weight, but there are stages 0 to 2 only");
}

TEST_CASE("Reductions: one per stage and rank in every training schedule", "[plan][lower]") {
  for (const std::string& name : schedule_names()) {
    const Schedule schedule = make_schedule(name, 4, 8);
    const Program program = lower(schedule, {.replicas = 2, .tied_stages = {0}});
    CAPTURE(name);
    REQUIRE(error_of([&] { validate(program); }) == "no error");
    int reductions = 0, copies = 0;
    for (const auto& list : program.ranks)
      for (std::size_t at = 0; at < list.size(); ++at) {
        if (list[at].kind != InstructionKind::ReduceGradients)
          continue;
        ++reductions;
        const bool more = std::any_of(
            list.begin() + static_cast<std::ptrdiff_t>(at), list.end(), [&](const Instruction& i) {
              return i.stage == list[at].stage && (i.kind == InstructionKind::Backward ||
                                                   i.kind == InstructionKind::WeightGradient);
            });
        CHECK_FALSE(more);
      }
    for (int stage = 0; stage < stage_count(program); ++stage)
      copies += static_cast<int>(program.placement.ranks_of(stage).size());
    CHECK(reductions == (is_forward_only(schedule) ? 0 : copies));
  }
}

TEST_CASE("Steps between the backwards are incompatible with reductions at the end",
          "[plan][lower]") {
  const std::string rule =
      "the gradients of stage 0 are summed over its replicas or with those of a tied stage at the "
      "end of the iteration, which is not possible with a step after every 1 backwards";
  CHECK(error_of([] { lower(make_pipedream(2, 4), {.replicas = 2, .step_every = 1}); }) == rule);
  CHECK(error_of([] {
          lower(make_pipedream(2, 4), {.tied_stages = {0, 1}, .step_every = 1});
        }) == rule);
  CHECK(error_of([] { lower(make_pipedream(2, 4), {.step_every = 1}); }) == "no error");
}

}  // namespace lower_test
