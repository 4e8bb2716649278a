#include "pipewright/plan/lower.hpp"

#include <algorithm>

#include "pipewright/plan/schedules.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

using namespace pipewright::plan;
using pipewright::test::error_of;

namespace {

/// One line a rank, without slots.
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

/// Stage 0 and 3 on rank 0, stage 1 and 2 on rank 1.
Schedule v_placement() { return parse_csv("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", "v.csv"); }

Program bare(const Schedule& schedule) { return from_schedule(schedule, {}); }

/// The slot of each instruction of a microbatch, in listed order.
std::vector<int> slots_of(const std::vector<Instruction>& instructions) {
  std::vector<int> slots;
  for (const Instruction& i : instructions)
    slots.push_back(i.slot);
  return slots;
}

}  // namespace

TEST_CASE("From a schedule come its actions and the options, nothing else", "[plan][lower]") {
  const Program program = from_schedule(parse_csv("0F0,0R0,0I0,0W0\n1F0,1B0\n", "s.csv"),
                                        {.communicators = CommunicatorLayout::Pair,
                                         .transfers = TransferMode::Rendezvous,
                                         .blocking = true});
  CHECK(text_of(program) ==
        "0F0 0R0 0I0 0W0\n"
        "1F0 1B0\n");
  CHECK(program.microbatches == 1);
  CHECK(program.rank_of_stage == std::vector<int>{0, 1});
  CHECK(program.communicators == CommunicatorLayout::Pair);
  CHECK(program.transfers == TransferMode::Rendezvous);
  CHECK(program.blocking);
}

TEST_CASE("Transfers: a send right after its maker, a receive right before its user",
          "[plan][lower]") {
  CHECK(text_of(with_transfers(bare(make_gpipe(3, 1)))) ==
        "0F0 0SEND_F0 0RECV_B0 0B0\n"
        "1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0\n"
        "2RECV_F0 2F0 2B0 2SEND_B0\n");
}

TEST_CASE("Transfers: of a split backward the input gradient is sent, before the weight gradient",
          "[plan][lower]") {
  CHECK(text_of(with_transfers(bare(parse_csv("0F0,0I0,0W0\n1F0,1I0,1W0\n", "s.csv")))) ==
        "0F0 0SEND_F0 0RECV_B0 0I0 0W0\n"
        "1RECV_F0 1F0 1I0 1SEND_B0 1W0\n");
}

TEST_CASE("Transfers: none between stages of one rank", "[plan][lower]") {
  CHECK(text_of(with_transfers(bare(v_placement()))) ==
        "0F0 0SEND_F0 3RECV_F0 3F0 3B0 3SEND_B0 0RECV_B0 0B0\n"
        "1RECV_F0 1F0 2F0 2SEND_F0 2RECV_B0 2B0 1B0 1SEND_B0\n");
  CHECK(text_of(with_transfers(bare(parse_csv("0F0,1F0,1B0,0B0\n", "s.csv")))) ==
        "0F0 1F0 1B0 0B0\n");
}

TEST_CASE("Loads: the first stage's input and the last stage's target, right before the forward",
          "[plan][lower]") {
  CHECK(text_of(with_loads(bare(make_gpipe(3, 2)))) ==
        "0LOAD0 0F0 0LOAD1 0F1 0B0 0B1\n"
        "1F0 1F1 1B0 1B1\n"
        "2LOAD0 2F0 2LOAD1 2F1 2B0 2B1\n");
  CHECK(text_of(with_loads(bare(make_gpipe(1, 1)))) == "0LOAD0 0F0 0B0\n");  // once, for both
}

TEST_CASE("Optimizer steps: one a stage, at the end of its rank's list", "[plan][lower]") {
  CHECK(text_of(with_optimizer_steps(bare(v_placement()))) ==
        "0F0 3F0 3B0 0B0 0STEP 3STEP\n"
        "1F0 2F0 2B0 1B0 1STEP 2STEP\n");
}

TEST_CASE("Slots: the lowest that is free from first to last use", "[plan][lower]") {
  const Program program = with_slots(bare(parse_csv("0F0,0F1,0B0,0F2,0B2,0B1\n", "s.csv")));
  CHECK(slots_of(program.ranks[0]) == std::vector<int>{0, 1, 0, 0, 0, 1});
}

TEST_CASE("Slots: each stage counts its own, and a step has none", "[plan][lower]") {
  const Program program = with_slots(with_optimizer_steps(bare(v_placement())));
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
  const Program program = lower(v_placement());
  CHECK(text_of(program) ==
        "0LOAD0 0F0 0SEND_F0 3RECV_F0 3LOAD0 3F0 3B0 3SEND_B0 0RECV_B0 0B0 0STEP 3STEP\n"
        "1RECV_F0 1F0 2F0 2SEND_F0 2RECV_B0 2B0 1B0 1SEND_B0 1STEP 2STEP\n");
  CHECK(error_of([&] { validate(program); }) == "no error");
}

TEST_CASE("Nothing comes after the optimizer step", "[plan][lower]") {
  for (const std::string& name : schedule_names())
    for (const auto& instructions : lower(make_schedule(name, 4, 8)).ranks) {
      CHECK(instructions.back().kind == InstructionKind::OptimizerStep);
      CHECK(std::count_if(instructions.begin(), instructions.end(), [](const Instruction& i) {
              return i.kind == InstructionKind::OptimizerStep;
            }) == 1);
    }
}

TEST_CASE("A schedule that cannot run is not lowered", "[plan][lower]") {
  CHECK(error_of([] { lower(parse_csv("0B0,0F0\n", "s.csv")); }) ==
        "rank 0, action 0B0: waits for ever for 0F0");
}
