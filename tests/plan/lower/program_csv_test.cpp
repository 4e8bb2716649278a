#include "pipewright/plan/lower/program_csv.hpp"

#include <fmt/format.h>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/reference.hpp"

namespace program_csv_test {

// Programs in torch's CSV format with communication.

using namespace pipewright::plan;
using namespace pipewright::test;

std::string error_in(const std::string& csv) {
  return error_of([&] { validate(program_from_csv(csv, "p.csv")); });
}

std::string no_instruction(const std::string& cell) {
  return "\"" + cell +
         "\" is not an instruction: write stage, one of F B I W R SEND_F RECV_F SEND_B RECV_B "
         "REDUCE_GRAD UNSHARD RESHARD and, but for the last three, microbatch";
}

TEST_CASE("A program file has one row per rank, without loads and steps", "[plan][program_csv]") {
  CHECK(to_csv(lower(make_1f1b(2, 2))) ==
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
        "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
  CHECK(to_csv(lower(make_gpipe(1, 1), {.replicas = 2, .tied_stages = {0}})) ==
        "0F0,0B0,0REDUCE_GRAD\n");
}

TEST_CASE("A fused pair is one cell, and loads come before it", "[plan][program_csv]") {
  const std::string csv = "0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n";
  const Program program = program_from_csv(csv, "p.csv");
  CHECK(to_csv(program) == csv);
  std::string whole;
  for (const Instruction& i : program.ranks[0])
    whole += to_string(i) + (i.fused_with_next ? "+" : " ");
  CHECK(whole == "0LOAD0 0F0 0LOAD1 0F1 0LOAD2 0F2+0B0 0B1 0B2 0STEP ");
}

TEST_CASE(
    "Every lowered schedule reads back as it was written, with early or just-in-time receives",
    "[plan][program_csv]") {
  for (const std::string& name : schedule_names())
    for (const auto receives : {ReceivePlacement::JustInTime, ReceivePlacement::WithSend})
      for (const int replicas : {1, 2})
        for (const int M : {8, 12}) {
          const Program program =
              lower(make_schedule(name, 4, M), {.communicators = CommunicatorLayout::Pair,
                                                .transfers = TransferMode::Eager,
                                                .receives = receives,
                                                .replicas = replicas});
          CAPTURE(name, M, replicas);
          const std::string csv = to_csv(program);
          const Program read =
              program_from_csv(csv, "p.csv", CommunicatorLayout::Pair, TransferMode::Eager);
          REQUIRE(to_csv(read) == csv);
          REQUIRE(read == program);
        }
}

TEST_CASE("Sharded programs read back as well", "[plan][program_csv]") {
  const Program program =
      with_early_receives(with_unshards(from_schedule(make_interleaved_1f1b(2, 4, 2), {}), 1));
  CHECK(to_csv(program_from_csv(to_csv(program), "p.csv")) == to_csv(program));
}

TEST_CASE("All errors of a program file are reported together, with row and column",
          "[plan][program_csv]") {
  CHECK(error_in("0F0,0X0,0B0\n1F0,,F1,1SEND_G0\n") ==
        "p.csv:1:2: " + no_instruction("0X0") + "\np.csv:2:3: " + no_instruction("F1") +
            "\np.csv:2:4: " + no_instruction("1SEND_G0"));
}

TEST_CASE("A fused pair consists of two actions, nothing else", "[plan][program_csv]") {
  for (const std::string cell : {"(0SEND_F0;0RECV_B0)OVERLAP_F_B", "(0B0;0REDUCE_GRAD)OVERLAP_F_B",
                                 "(0F0)OVERLAP_F_B", "(0F0;0B1;0F2)OVERLAP_F_B", "(0F0;0B1)P2P"}) {
    CHECK(error_in(cell + "\n") == "p.csv:1:1: " + no_instruction(cell));
  }
  CHECK(error_in("(0F0;0B0)OVERLAP_F_B\n") ==
        "rank 0, actions 0F0 and 0B0: a fused pair needs two microbatches, or one of its actions "
        "waits for the other");
}

TEST_CASE("Loads, steps and tied reductions do not exist in the format", "[plan][program_csv]") {
  for (const std::string cell : {"0LOAD0", "0STEP", "0REDUCE_TIED"})
    CHECK(error_in("0F0,0B0," + cell + "\n") == "p.csv:1:3: " + no_instruction(cell));
}

TEST_CASE("A program file without an action is rejected", "[plan][program_csv]") {
  CHECK(error_in("") == "p.csv:1:1: no action in the file");
  CHECK(error_in(",,\n") == "p.csv:1:1: no action in the file");
  CHECK(error_in("0SEND_F0\n") == "p.csv:1:1: no action in the file");
}

TEST_CASE("A transfer of a stage or microbatch without actions is rejected",
          "[plan][program_csv]") {
  CHECK(error_in("0F0,0B0,9SEND_F0,0SEND_F7,5REDUCE_GRAD\n") ==
        "rank 0, 9SEND_F0: there are 1 stages only\n"
        "rank 0, 0SEND_F7: there are 1 microbatches only\n"
        "rank 0, 5REDUCE_GRAD: there are 1 stages only");
}

TEST_CASE("A program that cannot run is rejected", "[plan][program_csv]") {
  CHECK(error_in("0F0,0B0\n1F0,1B0\n") ==
        "rank 0, 0B0: needs 0RECV_B0 before it\n"
        "rank 1, 1F0: needs 1RECV_F0 before it");
  CHECK(error_in("0F0,0SEND_F0,0B0\n1F0,1B0\n") ==
        "rank 0, 0SEND_F0: the other end is missing: 1RECV_F0 is missing on rank 1");
  CHECK(error_in("0B0,0F0\n") ==
        "deadlock: rank 0 at 0B0 waits for 0F0, which rank 0 runs after 0B0");
  CHECK(error_in("0F0,0B0,0REDUCE_GRAD,0REDUCE_GRAD\n") ==
        "rank 0, 0REDUCE_GRAD: occurs more than once");
}

TEST_CASE("A program file runs under the requested communicators", "[plan][program_csv]") {
  const std::string csv = to_csv(lower(make_1f1b(2, 2)));
  CHECK(error_in(csv) == "no error");
  CHECK(error_of([&] {
          validate(
              program_from_csv(csv, "p.csv", CommunicatorLayout::Pair, TransferMode::Rendezvous));
        }) ==
        "deadlock: rank 0 at 0SEND_F1 waits for 1RECV_F1, which rank 1 runs after 1SEND_B0; rank 1 "
        "at 1SEND_B0 waits for 0RECV_B0, which rank 0 runs after 0SEND_F1");
}

TEST_CASE("Orders lowered by torch are read, validated and written back", "[plan][reference]") {
  for (const std::string name :
       {"torch_lowered_Interleaved1F1B.csv", "torch_lowered_DualPipeV.csv",
        "torch_lowered_InterleavedZeroBubble.csv", "torch_lowered_LoopedBFS.csv",
        "torch_lowered_ZBVZeroBubble.csv", "torch_sendrecv_Interleaved1F1B.csv"}) {
    std::size_t matching = 0;
    const auto references = reference_schedules("schedules/" + name);
    for (const ReferenceSchedule& reference : references) {
      std::string csv;
      for (const auto& row : reference.ranks)
        csv += fmt::format("{}\n", fmt::join(row, ","));
      std::string back;
      const auto error = error_of([&] {
        const Program program = program_from_csv(csv, name);
        validate(program);
        back = to_csv(program);
      });
      INFO(name << ": P " << reference.columns.at("P") << ", M " << reference.columns.at("M"));
      CHECK(error == "no error");
      CHECK(back == csv);
      matching += back == csv;
    }
    report_equal(name, matching, references.size());
  }
}

}  // namespace program_csv_test
