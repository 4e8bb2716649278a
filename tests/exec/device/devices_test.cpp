#include "pipewright/exec/device/devices.hpp"

#include <fmt/format.h>

#include "pipewright/exec/memory/memory_meter.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace devices_test {

using namespace pipewright;
using namespace pipewright::exec;

/// Returns "0:1/3 …": GPU, part and number of parts of each rank.
std::string text_of(const std::vector<RankDevice>& devices) {
  std::string text;
  for (const RankDevice& each : devices)
    text += fmt::format("{}:{}/{} ", each.device.index(), each.part, each.parts);
  return text;
}

TEST_CASE("Ranks are assigned to GPUs evenly, consecutive ranks together", "[device]") {
  CHECK(text_of(assign_gpus(4, 1, false)) == "0:0/1 0:0/1 0:0/1 0:0/1 ");
  CHECK(text_of(assign_gpus(4, 1, true)) == "0:0/4 0:1/4 0:2/4 0:3/4 ");
  CHECK(text_of(assign_gpus(5, 2, true)) == "0:0/2 0:1/2 1:0/3 1:1/3 1:2/3 ");
  CHECK(text_of(assign_gpus(2, 8, true)) == "0:0/1 1:0/1 ");
}

TEST_CASE("The CPU retains no workspaces for products", "[device]") {
  at::mm(at::ones({4, 4}), at::ones({4, 4}));
  CHECK(product_workspaces(RankDevice()).value == 0);
}

TEST_CASE("A machine reports its GPUs, or why it has none", "[device]") {
  const Gpus& found = gpus();
  CHECK(found.names.empty() == !found.why_none.empty());
  if (!found.names.empty()) {
    CHECK(on_gpus(1).front().device == at::Device(at::kCUDA, 0));
    const auto next = static_cast<int>(found.names.size());
    CHECK(gpu_of_process(next).device == at::Device(at::kCUDA, 0));  // shared
    return;
  }
  CHECK(test::error_of([] { on_gpus(1); }) == "no GPU: " + found.why_none);
  CHECK(test::error_of([] { gpu_of_process(0); }) == "no GPU: " + found.why_none);
}

TEST_CASE("A thread on the CPU needs no device", "[device]") {
  const MemoryAccount account;
  const OnDevice here({}, account);
  here.finish();
  CHECK(at::ones({2}).device() == at::Device(at::kCPU));
}

}  // namespace devices_test
