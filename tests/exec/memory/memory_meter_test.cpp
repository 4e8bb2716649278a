#include "pipewright/exec/memory/memory_meter.hpp"

#include <ATen/ATen.h>

#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/skip.hpp"

namespace memory_meter_test {

using namespace pipewright::exec;
using pipewright::plan::Bytes;

TEST_CASE("Memory: a tensor is charged while it lives, and the peak remembers it", "[exec]") {
  MemoryAccount account;
  const ChargeTo charge(account);
  {
    const at::Tensor kept = at::empty({1000}, at::kFloat);
    CHECK(account.held() == Bytes{4000});
    { const at::Tensor gone = at::empty({500}, at::kFloat); }
    CHECK(account.held() == Bytes{4000});
    CHECK(account.peak() == Bytes{6000});
    account.reset_peak();
    CHECK(account.peak() == Bytes{4000});
  }
  CHECK(account.held() == Bytes{0});
}

TEST_CASE("Memory: the allocating account is credited whichever thread frees", "[exec]") {
  MemoryAccount maker, user;
  at::Tensor tensor;
  std::thread([&] {
    const ChargeTo charge(maker);
    tensor = at::empty({256}, at::kFloat);
  }).join();
  std::thread([&] {
    const ChargeTo charge(user);
    CHECK(maker.held() == Bytes{1024});
    tensor = at::Tensor();
  }).join();
  CHECK(maker.held() == Bytes{0});
  CHECK(user.held() == Bytes{0});
}

TEST_CASE("Memory: a tensor's charge can be moved, with all of its memory", "[exec]") {
  MemoryAccount maker, user;
  at::Tensor tensor;
  {
    const ChargeTo charge(maker);
    tensor = at::empty({256}, at::kFloat);
  }
  const ChargeTo charge(user);
  take_charge_of(tensor.narrow(0, 0, 16));
  take_charge_of(at::Tensor());
  take_charge_of(at::empty({0}));
  CHECK(maker.held() == Bytes{0});
  CHECK(user.held() == Bytes{1024});
  std::vector<float> numbers(8);  // memory that no account is charged for
  take_charge_of(at::from_blob(numbers.data(), {8}));
  CHECK(user.held() == Bytes{1024});
  tensor = at::Tensor();
  CHECK(user.held() == Bytes{0});
}

TEST_CASE("Memory: charges nest, and end with their scope", "[exec]") {
  MemoryAccount outer, inner;
  const ChargeTo charge(outer);
  at::Tensor a, b;
  {
    const ChargeTo nested(inner);
    a = at::empty({1}, at::kFloat);
  }
  b = at::empty({2}, at::kFloat);
  CHECK(inner.held() == Bytes{4});
  CHECK(outer.held() == Bytes{8});
}

TEST_CASE("Memory: an account's observer gets every tensor", "[exec]") {
  MemoryAccount maker, user;
  std::vector<std::int64_t> told, told_of_user;
  maker.follow([&](const AllocationEvent& event) { told.push_back(event.bytes); });
  user.follow([&](const AllocationEvent& event) { told_of_user.push_back(event.bytes); });
  at::Tensor kept;
  {
    const ChargeTo charge(maker);
    kept = at::empty({3}, at::kFloat);
    at::empty({5}, at::kByte);
  }
  {
    const ChargeTo charge(user);
    take_charge_of(kept);
  }
  user.follow({});
  kept = at::Tensor();
  CHECK(told == std::vector<std::int64_t>{12, 5, -5, -12});
  CHECK(told_of_user == std::vector<std::int64_t>{12});
}

TEST_CASE("Memory: tensors keep the alignment of LibTorch", "[exec]") {
  const MemoryAccount account;
  for (const int size : {1, 3, 17, 1000, 1 << 20}) {
    const at::Tensor tensor = at::empty({size}, at::kByte);
    CHECK(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % 64 == 0);
  }
  CHECK(at::empty({0}, at::kFloat).numel() == 0);
}

/// Returns the flags of the mapping that contains an address, " rd wr … "; empty if the kernel does
/// not report them.
std::string flags_of(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> begin >> dash >> end && dash == '-')
      is_here = begin <= reinterpret_cast<std::uintptr_t>(address) &&
                reinterpret_cast<std::uintptr_t>(address) < end;
    if (is_here && line.starts_with("VmFlags:"))
      return line.substr(line.find(':') + 1) + " ";
  }
  return "";
}

TEST_CASE("Memory: tensors may use huge pages", "[exec]") {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    pipewright::test::skip("this kernel has no huge pages");
  const MemoryAccount account;
  for (const std::int64_t size : {std::int64_t{1} << 20, std::int64_t{48} << 20}) {
    const at::Tensor tensor = at::empty({size}, at::kByte);
    const std::string flags = flags_of(tensor.const_data_ptr<std::uint8_t>() + size / 2);
    CAPTURE(size, flags);
    CHECK((flags.empty() || flags.find(" hg ") != std::string::npos));
  }
}

}  // namespace memory_meter_test
