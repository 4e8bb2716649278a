#include "transport/lifeline.hpp"

#include <unistd.h>

#include <csignal>
#include <thread>

#include "exec/support/processes.hpp"
#include "pipewright/exec/aborted.hpp"
#include "support/catch.hpp"

namespace lifeline_test {

using namespace pipewright::exec;
using pipewright::test::Ranks;
using pipewright::test::say;

/// No rank waits for another, as when all wait for their devices. Without the lifeline, a rank that
/// stops would be waited for as long as this test may take.
TEST_CASE("rank on a lifeline", "[.]") {
  const auto place = pipewright::test::rank_place();
  if (!place)
    return;
  Job job(place->environment, {.timeout = std::chrono::seconds(60)});
  {
    const Lifeline lifeline(job);
    say("ready");
    const bool goes = place->argument == "go" && job.rank() == 2;
    try {
      for (int look = 0; place->argument != "go" || look < 45; ++look) {
        if (goes)
          break;
        job.require_going();
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      say("end");
    } catch (const Aborted& aborted) {
      say(aborted.what());
    }
  }
}

TEST_CASE("A killed rank is noticed although no rank waits for it", "[exec][faults]") {
  Ranks ranks({.size = 3, .test_case = "rank on a lifeline", .argument = "stay"});
  for (int rank = 0; rank < 3; ++rank)
    REQUIRE(ranks.await_line(rank, "ready"));
  ranks.signal(2, SIGKILL);
  for (int rank = 0; rank < 2; ++rank)
    CHECK(ranks.said(rank).starts_with("ready\nrank 2 cannot be reached any more ("));
}

TEST_CASE("A rank that has left is not reported", "[exec][faults]") {
  Ranks ranks({.size = 3, .test_case = "rank on a lifeline", .argument = "go"});
  for (int rank = 0; rank < 3; ++rank)
    CHECK(ranks.said(rank) == "ready\nend\n");
}

}  // namespace lifeline_test
