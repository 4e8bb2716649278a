#include "pipewright/plan/generators/deepspeed.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/program/deadlock.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace deepspeed_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

using Kind = InstructionKind;

/// Returns one line per step, such as "LoadMicroBatch(0) ForwardPass(0)".
std::string steps_of(const DeepSpeedStream& stream, std::size_t rank) {
  std::string text;
  for (const auto& step : stream.ranks[rank]) {
    std::string line;
    for (const Instruction& i : step)
      line += (line.empty() ? "" : " ") + deepspeed_text(i);
    text += line + "\n";
  }
  return text;
}

/// Returns how often each kind occurs on a rank.
std::map<Kind, int> counts_of(const DeepSpeedStream& stream, int rank) {
  std::map<Kind, int> counts;
  for (const auto& step : stream.ranks[static_cast<std::size_t>(rank)])
    for (const Instruction& i : step)
      ++counts[i.kind];
  return counts;
}

void for_each_size(const std::function<void(int, int)>& visit) {
  for (const int P : {1, 2, 3, 4, 6, 8})
    for (const int M : {1, 2, 3, 4, 7, 16}) {
      CAPTURE(P, M);
      visit(P, M);
    }
}

TEST_CASE("DeepSpeed's ten names map to our kinds and back", "[plan][deepspeed]") {
  const std::map<std::string, Kind> names{{"LoadMicroBatch", Kind::Load},
                                          {"ForwardPass", Kind::Forward},
                                          {"BackwardPass", Kind::Backward},
                                          {"SendActivation", Kind::SendActivation},
                                          {"RecvActivation", Kind::ReceiveActivation},
                                          {"SendGrad", Kind::SendGradient},
                                          {"RecvGrad", Kind::ReceiveGradient},
                                          {"ReduceTiedGrads", Kind::ReduceTied},
                                          {"ReduceGrads", Kind::ReduceGradients},
                                          {"OptimizerStep", Kind::OptimizerStep}};
  for (const auto& [name, kind] : names) {
    CAPTURE(name);
    CHECK(from_deepspeed_name(name) == kind);
    CHECK(deepspeed_name(kind) == name);
  }
  for (const Kind kind :
       {Kind::InputGradient, Kind::WeightGradient, Kind::Recompute, Kind::Unshard, Kind::Reshard})
    CHECK_FALSE(deepspeed_name(kind).has_value());
  for (const char* name : {"", "forwardpass", "ForwardPass(0)", "BackwardGradientPass"})
    CHECK_FALSE(from_deepspeed_name(name).has_value());
}

TEST_CASE("An instruction's text has its buffer, if it has one", "[plan][deepspeed]") {
  CHECK(deepspeed_text({Kind::Load, 0, 5, 1}) == "LoadMicroBatch(1)");
  CHECK(deepspeed_text({Kind::Forward, 0, 5, 1}) == "ForwardPass(1)");
  CHECK(deepspeed_text({Kind::Backward, 0, 5, 1}) == "BackwardPass(1)");
  CHECK(deepspeed_text({Kind::SendActivation, 0, 5, 1}) == "SendActivation(1)");
  CHECK(deepspeed_text({Kind::ReceiveActivation, 0, 5, 1}) == "RecvActivation(1)");
  CHECK(deepspeed_text({Kind::SendGradient, 0, 5, 1}) == "SendGrad(1)");
  CHECK(deepspeed_text({Kind::ReceiveGradient, 0, 5, 1}) == "RecvGrad(1)");
  CHECK(deepspeed_text({Kind::ReduceTied, 0}) == "ReduceTiedGrads");
  CHECK(deepspeed_text({Kind::ReduceGradients, 0}) == "ReduceGrads");
  CHECK(deepspeed_text({Kind::OptimizerStep, 0}) == "OptimizerStep");
}

TEST_CASE("Training two microbatches on two ranks, step by step", "[plan][deepspeed]") {
  const DeepSpeedStream stream = deepspeed_train(2, 2);
  CHECK(steps_of(stream, 0) ==
        "LoadMicroBatch(0) ForwardPass(0)\n"
        "SendActivation(0)\n"
        "LoadMicroBatch(1) ForwardPass(1)\n"
        "RecvGrad(0) SendActivation(1) BackwardPass(0)\n"
        "\n"
        "RecvGrad(1) BackwardPass(1) ReduceTiedGrads ReduceGrads OptimizerStep\n");
  CHECK(steps_of(stream, 1) ==
        "\n"
        "RecvActivation(0) LoadMicroBatch(0) ForwardPass(0)\n"
        "BackwardPass(0)\n"
        "SendGrad(0) RecvActivation(1) LoadMicroBatch(1) ForwardPass(1)\n"
        "BackwardPass(1)\n"
        "SendGrad(1) ReduceTiedGrads ReduceGrads OptimizerStep\n");
}

TEST_CASE("Training: every rank has the right number of each instruction", "[plan][deepspeed]") {
  for_each_size([](int P, int M) {
    const DeepSpeedStream stream = deepspeed_train(P, M);
    for (int r = 0; r < P; ++r) {
      auto counts = counts_of(stream, r);
      const bool first = r == 0, last = r + 1 == P;
      REQUIRE(counts[Kind::Forward] == M);
      REQUIRE(counts[Kind::Backward] == M);
      REQUIRE(counts[Kind::Load] == (first || last ? M : 0));
      REQUIRE(counts[Kind::ReceiveActivation] == (first ? 0 : M));
      REQUIRE(counts[Kind::SendGradient] == (first ? 0 : M));
      REQUIRE(counts[Kind::SendActivation] == (last ? 0 : M));
      REQUIRE(counts[Kind::ReceiveGradient] == (last ? 0 : M));
      for (const Kind kind : {Kind::ReduceTied, Kind::ReduceGradients, Kind::OptimizerStep})
        REQUIRE(counts[kind] == 1);
      REQUIRE(static_cast<int>(stream.ranks[static_cast<std::size_t>(r)].size()) ==
              2 * (M + P - 1));
      REQUIRE(stream.buffers[static_cast<std::size_t>(r)] == std::max(2, std::min(P - r, M)));
    }
    REQUIRE(to_schedule(stream) == make_1f1b(P, M));
  });
}

TEST_CASE("Inference: every rank has the right number of each instruction", "[plan][deepspeed]") {
  for_each_size([](int P, int M) {
    const DeepSpeedStream stream = deepspeed_inference(P, M);
    for (int r = 0; r < P; ++r) {
      auto counts = counts_of(stream, r);
      const bool first = r == 0, last = r + 1 == P;
      REQUIRE(counts[Kind::Forward] == M);
      REQUIRE(counts[Kind::Backward] == 0);
      REQUIRE(counts[Kind::Load] == (first || last ? M : 0));
      REQUIRE(counts[Kind::ReceiveActivation] == (first ? 0 : M));
      REQUIRE(counts[Kind::SendActivation] == (last ? 0 : M));
      REQUIRE(counts[Kind::OptimizerStep] == 0);
      REQUIRE(static_cast<int>(stream.ranks[static_cast<std::size_t>(r)].size()) == M + P - 1);
      REQUIRE(stream.buffers[static_cast<std::size_t>(r)] == 2);
    }
    REQUIRE(to_schedule(stream) == make_inference(P, M));
  });
}

TEST_CASE("Data parallelism: every rank runs its own microbatches through the model",
          "[plan][deepspeed]") {
  for_each_size([](int P, int M) {
    const DeepSpeedStream stream = deepspeed_data_parallel(P, M);
    REQUIRE(stream.microbatches == P * M);
    for (int r = 0; r < P; ++r) {
      REQUIRE(counts_of(stream, r) == std::map<Kind, int>{{Kind::Load, M},
                                                          {Kind::Forward, M},
                                                          {Kind::Backward, M},
                                                          {Kind::ReduceGradients, 1},
                                                          {Kind::OptimizerStep, 1}});
      REQUIRE(static_cast<int>(stream.ranks[static_cast<std::size_t>(r)].size()) == M);
    }
    REQUIRE(to_schedule(stream) == make_data_parallel(P, M));
  });
}

TEST_CASE("A microbatch uses one buffer, and a rank uses no more buffers than it has",
          "[plan][deepspeed]") {
  for_each_size([](int P, int M) {
    for (const DeepSpeedStream& stream :
         {deepspeed_train(P, M), deepspeed_inference(P, M), deepspeed_data_parallel(P, M)})
      for (std::size_t r = 0; r < stream.ranks.size(); ++r)
        for (const auto& step : stream.ranks[r])
          for (const Instruction& i : step)
            if (has_microbatch(i.kind))
              REQUIRE(i.slot == i.microbatch % stream.buffers[r]);
  });
}

TEST_CASE("The streams run as in DeepSpeed: blocking, by rendezvous, between pairs",
          "[plan][deepspeed]") {
  for_each_size([](int P, int M) {
    for (const DeepSpeedStream& stream :
         {deepspeed_train(P, M), deepspeed_inference(P, M), deepspeed_data_parallel(P, M)}) {
      const Program program = to_program(stream);
      REQUIRE(program.blocking);
      REQUIRE(program.communicators == CommunicatorLayout::Pair);
      REQUIRE(program.transfers == TransferMode::Rendezvous);
      REQUIRE(error_of([&] { validate(program); }) == "no error");
    }
  });
}

TEST_CASE("Blocking transfers complete only in DeepSpeed's order", "[plan][deepspeed]") {
  // Rank 1 sends the gradient before it receives the next activation, so rank 0 must receive first.
  Program program = to_program(deepspeed_train(2, 3));
  auto& list = program.ranks[0];
  const auto receive = std::find_if(list.begin(), list.end(), [](const Instruction& i) {
    return i.kind == Kind::ReceiveGradient;
  });
  REQUIRE((receive + 1)->kind == Kind::SendActivation);
  std::swap(*receive, *(receive + 1));
  CHECK(error_of([&] { validate(program); }) ==
        "deadlock: rank 0 at 0SEND_F1 waits for 1RECV_F1, which rank 1 runs after 1SEND_B0; rank 1 "
        "at 1SEND_B0 waits for 0RECV_B0, which rank 0 runs after 0SEND_F1");
}

TEST_CASE("Streams without ranks or microbatches are rejected", "[plan][deepspeed]") {
  CHECK(error_of([] { deepspeed_train(0, 1); }) ==
        "deepspeed-train: 0 ranks asked for, the least is 1");
  CHECK(error_of([] { deepspeed_inference(1, 0); }) ==
        "deepspeed-inference: 0 microbatches asked for, the least is 1");
  CHECK(error_of([] { deepspeed_data_parallel(1, -1); }) ==
        "data-parallel: -1 microbatches asked for, the least is 1");
}

}  // namespace deepspeed_test
