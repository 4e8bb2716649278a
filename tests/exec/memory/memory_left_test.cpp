#include "pipewright/exec/memory/memory_left.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <fstream>
#include <string>

#include "exec/support/child.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"

namespace memory_left_test {

using namespace pipewright;

std::int64_t used(const std::string& key) {
  std::ifstream lines("/proc/self/status");
  std::int64_t kilobytes = 0;
  for (std::string word; lines >> word;)
    if (word == key && lines >> kilobytes)
      return kilobytes * 1024;
  return 0;
}

/// Returns the memory reported as left in a process whose limit is `above` more than it uses.
std::string left_under(int resource, const char* key, rlim_t above) {
  return test::in_child([=] {
    const rlim_t limit = static_cast<rlim_t>(used(key)) + above;
    const rlimit both{limit, limit};
    setrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &both);
    return fmt::format("{}", exec::memory_left().value / (1 << 20));
  });
}

TEST_CASE("The memory left within limits is reported", "[exec][memory]") {
  CHECK(exec::memory_left().value > 0);
  // In MiB, because a process grows a little meanwhile.
  for (const auto& [resource, key] : {std::pair(RLIMIT_AS, "VmSize:"), {RLIMIT_DATA, "VmData:"}}) {
    const int left = std::stoi(left_under(resource, key, rlim_t{64} << 20));
    CHECK(left >= 32);
    CHECK(left <= 64);
  }
}

}  // namespace memory_left_test
