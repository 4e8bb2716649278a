#include "pipewright/exec/cpu/core.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "cpu/unpinned_thread.hpp"
#include "support/catch.hpp"

namespace core_test {

using namespace pipewright::exec;

struct Scheduled {
  std::uint32_t size = 0, policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t slice_ns = 0, deadline_ns = 0, period_ns = 0;
};

Scheduled this_thread() {
  Scheduled own;
  REQUIRE(syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) == 0);
  return own;
}

TEST_CASE(
    "A thread that forwards data has short time slices if the kernel supports them, and no other "
    "has",
    "[exec][rank]") {
  const Scheduled before = this_thread();
  Scheduled inside, started;
  unpinned_thread([&] {
    inside = this_thread();
    std::thread([&] { started = this_thread(); }).join();
  }).join();
  CHECK((inside.slice_ns == 100'000 || inside.slice_ns == before.slice_ns));
  CHECK(started.slice_ns == inside.slice_ns);
  CHECK(inside.nice == before.nice);
  CHECK(inside.policy == before.policy);
  CHECK(this_thread().slice_ns == before.slice_ns);
}

int allowed_cores() {
  cpu_set_t allowed;
  REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  return CPU_COUNT(&allowed);
}

TEST_CASE(
    "A rank has its own core, and shares it with its background threads if there are few cores",
    "[exec][rank]") {
  const int cores = allowed_cores();
  const auto left_to = [](void (*pin)(int, int), int ranks) {
    int left = 0;
    std::thread([&] {
      pin(ranks - 1, ranks);
      left = allowed_cores();
    }).join();
    return left;
  };
  CHECK(left_to(pin_to_core, cores) == 1);
  CHECK(left_to(pin_to_core, cores + 1) == cores);
  CHECK(left_to(pin_beside, cores) == 1);
  if (cores > 1)
    CHECK(left_to(pin_beside, cores / 2) == cores);
  CHECK(left_to(pin_beside, cores + 1) == cores);
  CHECK(allowed_cores() == cores);
}

TEST_CASE("A rank that computes on a GPU is not pinned, so that no thread inherits its core",
          "[exec][rank]") {
  const int cores = allowed_cores();
  const auto left_on = [](at::Device device) {
    int left = 0;
    std::thread([&] {
      pin_rank(device, /*rank=*/0, /*ranks=*/1);
      std::thread([&] { left = allowed_cores(); }).join();  // a thread that it starts
    }).join();
    return left;
  };
  CHECK(left_on(at::Device(at::kCUDA, 0)) == cores);
  CHECK(left_on(at::kCPU) == 1);
}

TEST_CASE("All threads of a process can be pinned like a rank's, and are restored afterwards",
          "[exec][rank]") {
  const int cores = allowed_cores();
  const auto left_to = [&](int ranks) {
    int self = 0, beside = 0, after = 0;
    std::atomic<int> turn = 0;
    std::thread other([&] {  // started before
      turn = 1;
      while (turn != 2)
        std::this_thread::yield();
      beside = allowed_cores();
      turn = 3;
      while (turn != 4)
        std::this_thread::yield();
      after = allowed_cores();
    });
    while (turn != 1)
      std::this_thread::yield();
    {
      const OnCoreOfRank core(ranks - 1, ranks);
      self = allowed_cores();
      turn = 2;
      while (turn != 3)
        std::this_thread::yield();
    }
    turn = 4;
    other.join();
    CHECK(after == cores);
    CHECK(allowed_cores() == cores);
    return std::pair(self, beside);
  };
  CHECK(left_to(cores) == std::pair(1, 1));
  if (cores > 1)
    CHECK(left_to(cores / 2) == std::pair(1, cores));
  CHECK(left_to(cores + 1) == std::pair(cores, cores));
}

}  // namespace core_test
