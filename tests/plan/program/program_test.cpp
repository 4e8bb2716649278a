#include "pipewright/plan/program/program.hpp"

#include <sstream>

#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace program_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

std::string text_with_slot(const Instruction& i) {
  return to_string(i) + (i.slot < 0 ? "" : "#" + std::to_string(i.slot));
}

/// Returns one line per rank, with slots.
std::string text_of(const Program& program) {
  std::string text;
  for (const auto& instructions : program.ranks) {
    std::string line;
    for (const Instruction& i : instructions)
      line += (line.empty() ? "" : " ") + text_with_slot(i);
    text += line + "\n";
  }
  return text;
}

/// Returns a handwritten Program, one string per rank.
Program program_of(std::vector<int> rank_of_stage, int microbatches,
                   const std::vector<std::string>& ranks) {
  Program program{.microbatches = microbatches,
                  .placement = one_route(std::move(rank_of_stage)),
                  .communicators = CommunicatorLayout::Edge,
                  .transfers = TransferMode::Eager,
                  .blocking = false,
                  .asynchronous = false,
                  .ranks = {}};
  for (const std::string& line : ranks) {
    auto& instructions = program.ranks.emplace_back();
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      CAPTURE(word);
      const auto instruction = parse_instruction(word);
      REQUIRE(instruction.has_value());
      instructions.push_back(*instruction);
    }
  }
  return program;
}

std::string error_in(const Program& program) {
  return error_of([&] { validate(program); });
}

/// Two stages on two ranks; a test replaces one rank's list, and the other is valid.
const std::string first_rank = "0LOAD0#0 0F0#0 0SEND_F0#0 0RECV_B0#0 0B0#0 0STEP";
const std::string last_rank = "1RECV_F0#0 1LOAD0#0 1F0#0 1B0#0 1SEND_B0#0 1STEP";
std::string error_in_first(const std::string& line) {
  return error_in(program_of({0, 1}, 1, {line, last_rank}));
}
std::string error_in_last(const std::string& line) {
  return error_in(program_of({0, 1}, 1, {first_rank, line}));
}

std::string file_error(const std::string& fields) {
  const std::string text = "{\"format\": \"pipewright/program/2\",\n" + fields + "}";
  return error_of([&] { program_from_json(JsonDocument::parse(text, "p.json")); });
}

const std::string one_rank = R"("microbatches": 1, "routes": [[0]], "route_of_microbatch": [],
"communicators": "edge", "transfers": "eager", "blocking": false, "asynchronous": false,
)";

TEST_CASE("An instruction's text is stage, name, microbatch", "[plan][program]") {
  CHECK(to_string(Instruction{InstructionKind::Load, 0, 2, 1}) == "0LOAD2");
  CHECK(to_string(Instruction{InstructionKind::Forward, 0, 2, 1}) == "0F2");
  CHECK(to_string(Instruction{InstructionKind::Backward, 0, 2, 1}) == "0B2");
  CHECK(to_string(Instruction{InstructionKind::InputGradient, 0, 2, 1}) == "0I2");
  CHECK(to_string(Instruction{InstructionKind::WeightGradient, 0, 2, 1}) == "0W2");
  CHECK(to_string(Instruction{InstructionKind::Recompute, 0, 2, 1}) == "0R2");
  CHECK(to_string(Instruction{InstructionKind::SendActivation, 0, 2, 1}) == "0SEND_F2");
  CHECK(to_string(Instruction{InstructionKind::ReceiveActivation, 1, 2, 1}) == "1RECV_F2");
  CHECK(to_string(Instruction{InstructionKind::SendGradient, 1, 2, 1}) == "1SEND_B2");
  CHECK(to_string(Instruction{InstructionKind::ReceiveGradient, 0, 2, 1}) == "0RECV_B2");
  CHECK(to_string(Instruction{InstructionKind::OptimizerStep, 0}) == "0STEP");
}

TEST_CASE("Every kind of instruction reads back, with and without its slot", "[plan][program]") {
  for (const InstructionKind kind :
       {InstructionKind::Load, InstructionKind::Forward, InstructionKind::Backward,
        InstructionKind::InputGradient, InstructionKind::WeightGradient, InstructionKind::Recompute,
        InstructionKind::SendActivation, InstructionKind::ReceiveActivation,
        InstructionKind::SendGradient, InstructionKind::ReceiveGradient})
    for (const int slot : {-1, 0, 3, 12}) {
      const Instruction instruction{kind, 15, 207, slot};
      CAPTURE(text_with_slot(instruction));
      CHECK(parse_instruction(text_with_slot(instruction)) == instruction);
    }
  const Instruction step{InstructionKind::OptimizerStep, 3};
  CHECK(parse_instruction("3STEP") == step);
}

TEST_CASE("Text that is not an instruction gives nothing", "[plan][program]") {
  for (const char* text : {"",         "0",     "F0",     "0F",     "0STEP1", "0STEP#0",  "0F1#",
                           "0F1#-1",   "0F1#x", "0F1 #1", "0F1#1 ", "-1F0",   "0SEND_W1", "0RECV1",
                           "0send_f1", "0LOAD", "0F-1",   "0F1##1", "0G1",    "+0F1"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_instruction(text).has_value());
  }
}

TEST_CASE("A transfer's other end is the neighboring stage's operation", "[plan][program]") {
  const auto other_end = [](const char* text) {
    return to_string(counterpart(parse_instruction(text).value()));
  };
  CHECK(other_end("0SEND_F2") == "1RECV_F2");
  CHECK(other_end("1RECV_F2") == "0SEND_F2");
  CHECK(other_end("1SEND_B2") == "0RECV_B2");
  CHECK(other_end("0RECV_B2") == "1SEND_B2");
  const Program program = lower(make_1f1b(3, 1));
  CHECK(peer_rank(program, {InstructionKind::SendActivation, 1, 0}) == 2);
  CHECK(peer_rank(program, {InstructionKind::SendGradient, 1, 0}) == 0);
}

TEST_CASE("1F1B of two ranks is lowered as expected", "[plan][program]") {
  CHECK(text_of(lower(make_1f1b(2, 3))) ==
        "0LOAD0#0 0F0#0 0SEND_F0#0 0LOAD1#1 0F1#1 0SEND_F1#1 "          // warm-up, steady
        "0RECV_B0#0 0B0#0 0LOAD2#0 0F2#0 0SEND_F2#0 0RECV_B1#1 0B1#1 "  // microbatch 2: slot 0
        "0RECV_B2#0 0B2#0 0STEP\n"                                      // cool-down
        "1RECV_F0#0 1LOAD0#0 1F0#0 1B0#0 1SEND_B0#0 "
        "1RECV_F1#0 1LOAD1#0 1F1#0 1B1#0 1SEND_B1#0 "
        "1RECV_F2#0 1LOAD2#0 1F2#0 1B2#0 1SEND_B2#0 1STEP\n");
}

TEST_CASE("Every lowered schedule is a valid program and reads back as it was written",
          "[plan][program]") {
  int checked = 0;
  for (const std::string& name : schedule_names())
    for (const int stages : {1, 2, 3, 4, 8})
      for (const int microbatches : {1, 2, 3, 5, 8, 16}) {
        ScheduleRequest request;
        request.name = name;
        request.ranks = stages;
        request.microbatches = microbatches;
        LoweringOptions options = lowering_of(request);
        options.blocking = microbatches > 2;
        Program program;
        try {
          program = lower(make_schedule(request), options);
        } catch (const InputError&) {
          continue;  // the schedule does not accept these sizes
        }
        CAPTURE(name, stages, microbatches);
        REQUIRE(error_in(program) == "no error");
        const auto document = JsonDocument::parse(to_json(program).dump(), "p.json");
        REQUIRE(program_from_json(document) == program);
        ++checked;
      }
  CHECK(checked > 500);
}

TEST_CASE("The two ranks that the rejections start from are valid", "[plan][program]") {
  CHECK(error_in_first(first_rank) == "no error");
  CHECK(error_in_last(last_rank) == "no error");
}

TEST_CASE("A send without its receive is rejected, and a receive without its send",
          "[plan][program]") {
  CHECK(error_in_last("1LOAD0#0 1F0#0 1B0#0 1SEND_B0#0 1STEP") ==
        "rank 0, 0SEND_F0: the other end is missing: 1RECV_F0 is missing on rank 1");
  CHECK(error_in_last("1RECV_F0#0 1LOAD0#0 1F0#0 1B0#0 1STEP") ==
        "rank 0, 0RECV_B0: the other end is missing: 1SEND_B0 is missing on rank 1");
}

TEST_CASE("A receive after the action that needs its data is rejected", "[plan][program]") {
  CHECK(error_in_last("1LOAD0#0 1F0#0 1RECV_F0#0 1B0#0 1SEND_B0#0 1STEP") ==
        "rank 1, 1F0: needs 1RECV_F0 before it");
  CHECK(error_in_first("0LOAD0#0 0F0#0 0SEND_F0#0 0B0#0 0RECV_B0#0 0STEP") ==
        "rank 0, 0B0: needs 0RECV_B0 before it");
}

TEST_CASE("A send before the action that makes its data is rejected", "[plan][program]") {
  CHECK(error_in_first("0LOAD0#0 0SEND_F0#0 0F0#0 0RECV_B0#0 0B0#0 0STEP") ==
        "rank 0, 0SEND_F0: needs 0F0 before it");
  CHECK(error_in_last("1RECV_F0#0 1LOAD0#0 1F0#0 1SEND_B0#0 1B0#0 1STEP") ==
        "rank 1, 1SEND_B0: needs 1B0 before it");
}

TEST_CASE("The first stage needs its input and the last its target", "[plan][program]") {
  CHECK(error_in_first("0F0#0 0SEND_F0#0 0RECV_B0#0 0B0#0 0STEP") ==
        "rank 0, 0F0: needs 0LOAD0 before it");
  CHECK(error_in_last("1RECV_F0#0 1F0#0 1LOAD0#0 1B0#0 1SEND_B0#0 1STEP") ==
        "rank 1, 1F0: needs 1LOAD0 before it");
}

TEST_CASE("A duplicate instruction is rejected", "[plan][program]") {
  CHECK(error_in_first("0LOAD0#0 0F0#0 0SEND_F0#0 0SEND_F0#0 0RECV_B0#0 0B0#0 0STEP") ==
        "rank 0, 0SEND_F0: occurs more than once");
}

TEST_CASE("No two live microbatches share a slot", "[plan][program]") {
  CHECK(error_in(program_of({0}, 2, {"0LOAD0#0 0F0#0 0LOAD1#0 0F1#1 0B0#0 0B1#1 0STEP"})) ==
        "rank 0, 0LOAD1: uses slot 0, which still holds microbatch 0\n"
        "rank 0, 0F1: uses slot 1, but its microbatch lies in slot 0\n"
        "rank 0, 0B1: uses slot 1, but its microbatch lies in slot 0");
  CHECK(error_in(program_of({0}, 2, {"0LOAD0#0 0F0#0 0B0#0 0LOAD1#0 0F1#0 0B1#0 0STEP"})) ==
        "no error");  // one after the other
}

TEST_CASE("Every instruction on a microbatch has a slot, and no more than there are microbatches",
          "[plan][program]") {
  CHECK(error_in(program_of({0}, 1, {"0LOAD0#0 0F0 0B0#0 0STEP"})) ==
        "rank 0, 0F0: has no buffer slot");
  CHECK(error_in(program_of({0}, 1, {"0LOAD0#0 0F0#0 0B0#999999 0STEP"})) ==
        "rank 0, 0B0: uses slot 999999, but 1 microbatches need no more slots than that");
}

TEST_CASE("An instruction of a stage on another rank is rejected", "[plan][program]") {
  CHECK(error_in_first("0LOAD0#0 0F0#0 0SEND_F0#0 0RECV_B0#0 0B0#0 1B0#0 0STEP") ==
        "rank 0, 1B0: stage 1 is on rank 1");
}

TEST_CASE("An instruction of a stage or microbatch that does not exist is rejected",
          "[plan][program]") {
  CHECK(error_in(program_of({0}, 1, {"0LOAD0#0 0F0#0 0B0#0 2F0#0 0F1#0 0SEND_F0#0"})) ==
        "rank 0, 2F0: there are 1 stages only\n"
        "rank 0, 0F1: there are 1 microbatches only\n"
        "rank 0, 0SEND_F0: there is no stage at the other end");
}

TEST_CASE("A transfer between stages of one rank is rejected", "[plan][program]") {
  CHECK(error_in(program_of({0, 0}, 1,
                            {"0LOAD0#0 0F0#0 0SEND_F0#0 1LOAD0#0 1F0#0 1B0#0 0B0#0 0STEP"})) ==
        "rank 0, 0SEND_F0: both stages are on this rank, so no transfer is needed");
}

TEST_CASE("A stage without a single action is rejected", "[plan][program]") {
  CHECK(error_in(program_of({0, 0}, 1, {"0LOAD0#0 0F0#0 0B0#0 0STEP"})) ==
        "rank 0: stage 1 has no action");
}

TEST_CASE("An optimizer step before the last backward is rejected", "[plan][program]") {
  CHECK(error_in(program_of({0}, 1, {"0LOAD0#0 0F0#0 0STEP 0B0#0"})) ==
        "rank 0, 0B0: comes after 0STEP");
}

TEST_CASE("The computations of a program are validated as a schedule", "[plan][program]") {
  CHECK(error_in(program_of({0}, 1, {"0LOAD0#0 0B0#0 0F0#0"})) ==
        "deadlock: rank 0 at 0B0 waits for 0F0, which rank 0 runs after 0B0");
}

TEST_CASE("Layouts and transfer modes have names", "[plan][program]") {
  for (const std::string& name : communicator_layouts())
    CHECK(to_string(parse_communicator_layout(name)) == name);
  for (const std::string& name : transfer_modes())
    CHECK(to_string(parse_transfer_mode(name)) == name);
  CHECK(error_of([] { parse_communicator_layout("egde"); }) ==
        "\"egde\" is not known here, did you mean \"edge\"? (possible: edge, pair or rank)");
}

TEST_CASE("A program file's misspelled instruction is reported with its position",
          "[plan][program]") {
  CHECK(file_error(one_rank + R"("ranks": [["0LOAD0#0", "0F0#0", "0G0#0", 7]])") ==
        "p.json:4:33: /ranks/0/2: \"0G0#0\" is not an instruction, such as \"0F2#1\"\n"
        "p.json:4:42: /ranks/0/3: \"7\" is not an instruction, such as \"0F2#1\"");
  CHECK(file_error(one_rank + R"("ranks": ["0F0#0"])") ==
        "p.json:4:11: /ranks/0: a list of instructions is needed here");
}

TEST_CASE("A program file's unknown words are reported with their positions", "[plan][program]") {
  CHECK(file_error(
            R"("microbatches": 0, "routes": [[0]], "route_of_microbatch": [], "asynchronous": false,
"communicators": "egde", "transfers": "eager", "blocking": 1, "ranks": []
)") == "p.json:2:1: /microbatches: 0 is not possible: it must be at least 1\n"
       "p.json:3:1: /communicators: \"egde\" is not known here, did you mean \"edge\"? (possible: "
       "edge, pair or rank)\n"
       "p.json:3:48: /blocking: true or false is needed here, not 1");
}

TEST_CASE("A program file is read unchanged, even if it cannot run", "[plan][program]") {
  const std::string text =
      "{\"format\": \"pipewright/program/2\",\n" + one_rank + R"("ranks": [["0F0#0", "0B0"]]})";
  const Program program = program_from_json(JsonDocument::parse(text, "p.json"));
  CHECK(text_of(program) == "0F0#0 0B0\n");
  CHECK(error_in(program) ==
        "rank 0, 0F0: needs 0LOAD0 before it\n"
        "rank 0, 0B0: has no buffer slot");
}

TEST_CASE("A stage steps once, unless its updates are asynchronous", "[plan][program]") {
  Program program = program_of({0}, 1, {"0LOAD0#0 0F0#0 0B0#0 0STEP 0STEP"});
  CHECK(error_in(program) == "rank 0, 0STEP: occurs more than once");
  program.asynchronous = true;
  CHECK(error_in(program).starts_with("asynchronous is true, but step_every is 0: "));
  program.step_every = 1;
  CHECK(error_in(program) == "no error");
}

TEST_CASE("A collective occurs once on each of its members, in the right place",
          "[plan][program]") {
  const auto wrong = [](const std::string& first, const std::string& second) {
    return error_in(program_of({0, 1}, 1,
                               {"0LOAD0#0 0F0#0 0SEND_F0#0 0RECV_B0#0 0B0#0 " + first,
                                "1RECV_F0#0 1LOAD0#0 1F0#0 1B0#0 1SEND_B0#0 " + second}));
  };
  CHECK(wrong("0NORM 0STEP 0LOSS", "1NORM 1STEP 1LOSS") == "no error");
  CHECK(wrong("0NORM 0STEP 0LOSS", "1STEP") ==
        "rank 1 lacks NORM, which rank 0 has: all members of a collective must have it\n"
        "rank 1 lacks LOSS, which rank 0 has: all members of a collective must have it");
  CHECK(wrong("0NORM 0NORM 0STEP", "1NORM 1STEP") == "rank 0, 0NORM: occurs more than once");
  CHECK(wrong("0STEP 0NORM", "1NORM 1STEP") == "rank 0, 0NORM: comes after 0STEP");
  CHECK(wrong("0STEP 0REDUCE_GRAD", "1STEP") == "rank 0, 0REDUCE_GRAD: comes after 0STEP");
  CHECK(wrong("0GATHER 0STEP", "1STEP") == "rank 0, 0GATHER: needs 0STEP before it");
  // With two different orders both ranks would wait forever.
  CHECK(wrong("0NORM 0STEP 0LOSS", "1LOSS 1NORM 1STEP") ==
        "deadlock: rank 0 at 0NORM waits for 1LOSS; rank 1 at 1LOSS waits for 0LOSS, which rank 0 "
        "runs after 0NORM");
}

TEST_CASE("The fused pairs of a program are validated as a schedule's", "[plan][program]") {
  const std::vector<std::string> ranks{
      "0LOAD0#0 0F0#0 0SEND_F0#0 0RECV_B0#0 0LOAD1#1 0F1#1 0B0#0 "
      "0SEND_F1#1 0RECV_B1#1 0B1#1",
      "1RECV_F0#0 1LOAD0#0 1F0#0 1B0#0 1SEND_B0#0 1RECV_F1#0 "
      "1LOAD1#0 1F1#0 1B1#0 1SEND_B1#0"};
  Program program = program_of({0, 1}, 2, ranks);
  program.ranks[0][5].fused_with_next = true;  // 0F1 and 0B0
  CHECK(error_in(program) == "no error");
  program.ranks[0][6].fused_with_next = true;
  CHECK(error_in(program) == "rank 0, action 0F1: a fused pair has two actions");
  program = program_of({0}, 1, {"0LOAD0#0 0F0#0 0B0#0"});
  program.ranks[0][1].fused_with_next = true;
  CHECK(error_in(program) ==
        "rank 0, actions 0F0 and 0B0: a fused pair needs two microbatches, or one of its actions "
        "waits for the other");
}

TEST_CASE("Stages and microbatches too large to count neighbors are rejected", "[plan][program]") {
  CHECK(parse_instruction("999999SEND_F999999#999999"));
  CHECK_FALSE(parse_instruction("1000000SEND_F0"));
  CHECK_FALSE(parse_instruction("0SEND_F2147483647"));
  CHECK_FALSE(parse_instruction("0SEND_F0#1000000"));
  CHECK_FALSE(parse_instruction("-0F0"));
}

}  // namespace program_test
