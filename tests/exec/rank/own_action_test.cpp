// Actions that are run by a user's function.

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <set>

#include "exec/support/equals_serial.hpp"
#include "exec/support/sample_schedules.hpp"

namespace own_action_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::make;
using test::partition_for;
using test::small_setup;

TEST_CASE("A user's function runs each action, with the bits of serial training", "[exec]") {
  const auto schedule = make("zb-h1", 2, 3);
  std::mutex mutex;
  std::multiset<std::string> ran;
  ExecutorOptions options;
  options.run_action = [&](const ReadyAction& action) {
    action.run();
    const std::lock_guard lock(mutex);
    ran.insert(fmt::format("{} {}", action.rank, to_string(action.instruction)));
  };
  test::check_equals_serial(plan::lower(schedule), partition_for(schedule), small_setup(), options,
                            /*steps=*/2);
  std::multiset<std::string> expected;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    for (const plan::Action& action : schedule.ranks[rank])
      for (int step = 0; step < 2; ++step)
        expected.insert(fmt::format("{} {}", rank, to_string(action)));
  CHECK(ran == expected);
}

TEST_CASE("A user's own work can run before and after actions", "[exec]") {
  struct Arguments {
    std::string word;
    bool before;
  };
  const std::multimap<std::string, Arguments> own{
      {"0F1", {"prefetch", true}}, {"0B1", {"flush", false}}, {"0F1", {"announce", true}}};
  std::vector<std::string> log;  // of rank 0, in order
  ExecutorOptions options;
  options.run_action = [&](const ReadyAction& action) {
    if (action.rank != 0)
      return action.run();
    const auto name = to_string(action.instruction);
    const auto [first, last] = own.equal_range(name);
    for (auto at = first; at != last; ++at)
      if (at->second.before)
        log.push_back(at->second.word);
    action.run();
    log.push_back(name);
    for (auto at = first; at != last; ++at)
      if (!at->second.before)
        log.push_back(at->second.word);
  };
  const auto schedule = make("1f1b", 2, 2);
  test::check_equals_serial(plan::lower(schedule), partition_for(schedule), small_setup(), options,
                            /*steps=*/1);
  CHECK(log ==
        std::vector<std::string>{"0F0", "prefetch", "announce", "0F1", "0B0", "0B1", "flush"});
}

TEST_CASE("An error of a user's function for actions is reported with its rank and action",
          "[exec]") {
  const auto schedule = make("1f1b", 2, 2);
  const auto error = [&](const std::function<void(const ReadyAction&)>& run) {
    try {
      ExecutorOptions options;
      options.run_action = [&](const ReadyAction& action) {
        if (to_string(action.instruction).starts_with("1B0"))
          return run(action);
        action.run();
      };
      Executor(plan::lower(schedule), partition_for(schedule), small_setup(), options).step(0);
    } catch (const RankFailure& failure) {
      return std::string(failure.what());
    }
    return std::string();
  };
  CHECK(error([](const ReadyAction&) {}) ==
        "rank 1, action 1B0, step 0: the function for actions has not run it");
  CHECK(error([](const ReadyAction& action) {
          action.run();
          action.run();
        }) == "rank 1, action 1B0, step 0: the function for actions runs it twice");
  CHECK(error([](const ReadyAction&) { throw std::runtime_error("not today"); }) ==
        "rank 1, action 1B0, step 0: not today");
}

}  // namespace own_action_test
