// Version 2 of Catch2 declares listeners only with this.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include "support/skip.hpp"

#include <fmt/format.h>

#include <vector>

#include "support/catch.hpp"

namespace pipewright::test {
namespace {

/// The same as ctest's SKIP_RETURN_CODE in tests/CMakeLists.txt.
constexpr int skipped_code = 77;

/// The skips of the run so far, and of the running case.
struct Skips {
  std::string running;  // the case's name
  int cases = 0;
  int skipped_cases = 0;
  bool ends_case = false;
  std::vector<std::string> reasons;
};

Skips& skips() {
  static Skips skips;
  return skips;
}

#if CATCH_VERSION_MAJOR < 3
using ListenerBase = Catch::TestEventListenerBase;
#else
using ListenerBase = Catch::EventListenerBase;
#endif

/// Lists and counts skips. `./dev test` collects the lines that begin with "skipped".
class SkipListener : public ListenerBase {
 public:
  using ListenerBase::ListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    skips().running = info.name;
    skips().ends_case = false;
    skips().reasons.clear();
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    Skips& run = skips();
    ++run.cases;
    const bool failed = stats.totals.assertions.failed > 0;
    run.skipped_cases += run.ends_case && !failed;
    for (const std::string& reason : run.reasons)
      fmt::print("skipped{}: \"{}\": {}\n", run.ends_case ? "" : " in part", run.running, reason);
    std::fflush(stdout);
  }

  void testRunEnded(const Catch::TestRunStats&) override {
    if (skips().skipped_cases > 0)
      fmt::print("{} of {} test cases were skipped\n", skips().skipped_cases, skips().cases);
    std::fflush(stdout);
  }
};
CATCH_REGISTER_LISTENER(SkipListener)

}  // namespace

void skip(const std::string& reason) {
  SUCCEED(reason);  // a case without assertions would be a failure
  skips().reasons.push_back(reason);
  skips().ends_case = true;
  throw Catch::TestFailureException();  // ends the case, which fails only by its assertions
}

void skip_part(const std::string& reason) { skips().reasons.push_back(reason); }

int exit_code_of(int failed_cases) {
  if (failed_cases != 0)
    return 1;
  return skips().cases > 0 && skips().skipped_cases == skips().cases ? skipped_code : 0;
}

}  // namespace pipewright::test
