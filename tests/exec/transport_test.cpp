#include "pipewright/exec/transport.hpp"

#include <torch/torch.h>

#include <thread>

#include "pipewright/plan/lower.hpp"
#include "pipewright/plan/schedules.hpp"
#include "support/catch.hpp"

namespace {

using namespace pipewright;
using namespace pipewright::exec;

plan::Instruction instruction(const char* text) { return plan::parse_instruction(text).value(); }

TEST_CASE("in process: a tensor is handed over by reference", "[exec][transport]") {
  const auto program = plan::lower(plan::make_1f1b(2, 2));
  const auto transport = make_in_process_transport(program);
  const at::Tensor tensor = torch::ones({4});
  transport->send(instruction("0SEND_F0"), tensor);
  CHECK(transport->receive(instruction("1RECV_F0")).is_same(tensor));
}

TEST_CASE("in process: a receive takes what its name says, whatever was sent first",
          "[exec][transport]") {
  const auto transport = make_in_process_transport(plan::lower(plan::make_1f1b(2, 2)));
  transport->send(instruction("0SEND_F0"), torch::full({1}, 10));
  transport->send(instruction("0SEND_F1"), torch::full({1}, 11));
  transport->send(instruction("1SEND_B0"), torch::full({1}, 20));
  CHECK(transport->receive(instruction("1RECV_F1")).item<int>() == 11);
  CHECK(transport->receive(instruction("0RECV_B0")).item<int>() == 20);
  CHECK(transport->receive(instruction("1RECV_F0")).item<int>() == 10);
}

TEST_CASE("in process: abort ends a wait that has begun and every one after", "[exec][transport]") {
  const auto transport = make_in_process_transport(plan::lower(plan::make_1f1b(2, 2)));
  bool aborted = false;
  std::thread waiting([&] {
    try {
      transport->receive(instruction("1RECV_F0"));
    } catch (const Aborted&) {
      aborted = true;
    }
  });
  transport->abort();
  waiting.join();
  CHECK(aborted);
  CHECK_THROWS_AS(transport->send(instruction("0SEND_F0"), {}), Aborted);
}

}  // namespace
