// Reports about ranks that have stalled, for each kind of stall.
#include "job/stall.hpp"

#include "support/catch.hpp"

namespace stall_test {

using namespace pipewright::exec;

constexpr std::chrono::milliseconds time{600'000};
const std::vector<int> device{};  // a wait for the device has no ranks to wait for

Heartbeat in_action(const char* at, std::vector<Wait> waits = {}) {
  return {.at = at, .in_action = true, .waits = std::move(waits)};
}

Heartbeat in_phase(const char* at, std::vector<Wait> waits = {}) {
  return {.at = at, .in_action = false, .waits = std::move(waits)};
}

Heartbeat gone() { return {.at = "its end", .waits = {}, .left = true}; }

TEST_CASE("A stall names the busy ranks and the ranks that wait for them", "[exec][job]") {
  CHECK(stall_report({in_action("0B2", {{{1}, "0RECV_B2"}}), in_action("1F3")}, time) ==
        "rank 1 has been at 1F3 for 600 s and does not end; rank 0 waits in 0RECV_B2 for it");
}

TEST_CASE("A stall with all ranks busy names all of them", "[exec][job]") {
  CHECK(stall_report({in_action("0F5"), in_action("1F3"), gone()}, time) ==
        "rank 0 has been at 0F5 for 600 s and does not end; rank 1 has been at 1F3 for 600 s and "
        "does not end");
}

TEST_CASE("A stall of ranks that wait for each other names only the circle", "[exec][job]") {
  CHECK(stall_report({in_action("0F5", {{{1}, "0RECV_B3"}}), in_action("1F4", {{{2}, "1RECV_B3"}}),
                      in_action("2B3", {{{1}, "2RECV_F3"}})},
                     time) ==
        "no rank has made progress for 600 s: rank 1 (at 1F4) waits in 1RECV_B3 for rank 2; rank 2 "
        "(at 2B3) waits in 2RECV_F3 for rank 1");
}

TEST_CASE("A stall in a collective names the missing ranks, or says that all are there",
          "[exec][job]") {
  const Wait sum{{0, 1}, "a collective of ranks 0, 1"};
  CHECK(stall_report({in_action("0STEP", {sum}), in_action("1STEP", {sum})}, time) ==
        "no rank has made progress for 600 s: rank 0 (at 0STEP) waits in a collective of ranks 0, "
        "1, which all ranks have entered; rank 1 (at 1STEP) waits in a collective of ranks 0, 1, "
        "which all ranks have entered");
  CHECK(stall_report({in_action("0STEP", {sum}), in_action("1B3")}, time) ==
        "rank 1 has been at 1B3 for 600 s and does not end; rank 0 waits in a collective of ranks "
        "0, 1 for it");
}

TEST_CASE("A stall of all ranks at the end of a step is reported once", "[exec][job]") {
  const Heartbeat at_end = in_action("the end of a step", {{{0, 1, 2}, "the end of a step"}});
  CHECK(stall_report({at_end, at_end, at_end}, time) ==
        "no rank has made progress for 600 s: ranks 0, 1, 2 wait in the end of a step, which all "
        "ranks have entered");
}

TEST_CASE("A stall of ranks that wait for their devices says so", "[exec][job]") {
  const Heartbeat at_end = in_action("0LOSS", {{device, "the end of a step"}});
  CHECK(stall_report({at_end}, time) ==
        "no rank has made progress for 600 s: rank 0 (at 0LOSS) waits in the end of a step for its "
        "device");
  CHECK(stall_report(
            {in_action("0F2", {{device, "0F2"}}), in_action("1RECV_F2", {{{0}, "1RECV_F2"}})},
            time) ==
        "no rank has made progress for 600 s: rank 0 waits in 0F2 for its device; rank 1 waits in "
        "1RECV_F2 for rank 0");
  const Heartbeat loads = in_action("LOAD", {{device, "LOAD"}});
  CHECK(stall_report({loads, loads}, time) ==
        "no rank has made progress for 600 s: ranks 0, 1 wait in LOAD for their devices");
}

TEST_CASE("A phase has no time limit, with or without a device", "[exec][job]") {
  const Wait all{{0, 1}, "a rehearsal"};
  CHECK(stall_report({in_action("0B2", {{{1}, "0RECV_B2"}}), in_phase("a rehearsal")}, time) == "");
  CHECK(stall_report({in_action("0B2"), in_phase("a rehearsal")}, time) == "");
  CHECK(stall_report({in_action("0B2", {{{1}, "0RECV_B2"}}),
                      in_phase("a rehearsal", {{device, "a rehearsal"}})},
                     time) == "");
  CHECK(stall_report({in_phase("a rehearsal", {all}), in_phase("a rehearsal", {all})}, time) == "");
  CHECK(stall_report({gone(), gone()}, time) == "");
}

TEST_CASE("A stall is reported by waiting ranks, or by all if none waits", "[exec][job]") {
  const Heartbeat waiting = in_action("0B2", {{{1}, "0RECV_B2"}}), busy = in_action("1F3");
  CHECK(tells_of_stall(0, {waiting, busy}));
  CHECK_FALSE(tells_of_stall(1, {waiting, busy}));
  CHECK(tells_of_stall(0, {busy, busy, gone()}));
  CHECK_FALSE(tells_of_stall(2, {busy, busy, gone()}));
}

}  // namespace stall_test
