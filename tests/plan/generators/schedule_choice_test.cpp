// Custom schedules as values: an order, a generator, a Program.

#include "pipewright/plan/generators/schedule_choice.hpp"

#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/make_schedule.hpp"

namespace schedule_choice_test {

using namespace pipewright::plan;
using pipewright::test::error_of;
using pipewright::test::make;

ScheduleRequest request_for(const ScheduleChoice& choice, int ranks, int microbatches) {
  ScheduleRequest request;
  request.name = choice.name;
  request.own = choice.own;
  request.ranks = ranks;
  request.microbatches = microbatches;
  return request;
}

/// A schedule with the newest weight gradient first, which Pipewright would reorder.
const Schedule newest_first = parse_csv(
    "0F0,0F1,0I0,0I1,0W1,0W0\n"
    "1F0,1I0,1F1,1I1,1W1,1W0\n",
    "newest");

TEST_CASE("A custom order is made and lowered unchanged", "[plan][schedule]") {
  const ScheduleChoice own = newest_first;
  CHECK(own.label() == "own");
  const ScheduleRequest request = request_for(own, 2, 2);
  CHECK(stage_count(request) == 2);
  CHECK(make_training_schedule(request) == newest_first);
  CHECK(lower(request, newest_first, {}) == lower(newest_first));
  CHECK(error_of([&] { make_schedule(request_for(own, 3, 8)); }) ==
        "own is for 2 ranks, 2 microbatches and 2 stages, but 3 ranks, 8 microbatches and 2 stages "
        "are asked for");
}

TEST_CASE("A custom generator makes the requested schedule", "[plan][schedule]") {
  ScheduleDescriptor mine;
  mine.name = "mine";
  mine.chunks = Chunks::Any;
  mine.takes_group = true;
  mine.make = [](const ScheduleRequest& r) -> GeneratedSchedule {
    return {
        make(r.group == 1 ? "looped-bfs" : "interleaved-1f1b", r.ranks, r.microbatches, r.chunks)};
  };
  const ScheduleChoice own = mine;
  ScheduleRequest request = request_for(own, 2, 4);
  request.chunks = 2;
  CHECK(stage_count(request) == 4);
  CHECK(make_training_schedule(request) == make("interleaved-1f1b", 2, 4, 2));
  request.group = 1;
  CHECK(make_training_schedule(request) == make("looped-bfs", 2, 4, 2));
  request.memory_units = 4;
  CHECK(error_of([&] { make_schedule(request); }).find("mine: takes no memory limit") == 0);
}

TEST_CASE("A generator that makes another or an invalid schedule is rejected", "[plan][schedule]") {
  ScheduleDescriptor mine;
  mine.name = "mine";
  mine.make = [](const ScheduleRequest&) -> GeneratedSchedule { return {newest_first}; };
  CHECK(
      error_of([&] { make_schedule(request_for(mine, 2, 3)); }) ==
      "mine is for 2 ranks, 2 microbatches and 2 stages, but 2 ranks, 3 microbatches and 2 stages "
      "are asked for");
  mine.make = [](const ScheduleRequest&) -> GeneratedSchedule {
    return {parse_csv("0B0,0F0\n1F0,1B0\n", "stuck")};
  };
  const ScheduleChoice stuck = mine;
  const ScheduleRequest request = request_for(stuck, 2, 1);
  CHECK(error_of([&] {
          lower(request, make_schedule(request), {});
        }).find("mine is not sound:\ndeadlock: rank 0 at 0B0 waits for") == 0);
  mine.name = "1f1b";
  CHECK(error_of([&] { ScheduleChoice{mine}; }).find("\"1f1b\" cannot be the name") == 0);
  mine.name = "my.csv";
  CHECK(error_of([&] { ScheduleChoice{mine}; }).find("\"my.csv\" cannot be the name") == 0);
}

TEST_CASE("An invalid order is rejected as a choice", "[plan][schedule]") {
  CHECK(error_of([] {
          ScheduleChoice{parse_csv("0F0\n1F0,1B0\n", "half"), "half"};
        }) ==
        "half is not sound:\nrank 0, action 0B0: the backward occurs 0 times instead of once");
}

TEST_CASE("A custom Program runs unchanged if it matches the options", "[plan][schedule]") {
  const Program paired =
      lower(make("1f1b", 2, 4), {.communicators = CommunicatorLayout::Pair, .replicas = 2});
  const ScheduleChoice own = paired;
  const ScheduleRequest request = request_for(own, 2, 4);
  LoweringOptions wanted = lowering_of(request);
  CHECK(wanted.communicators == CommunicatorLayout::Pair);
  wanted.replicas = 2;
  CHECK(lower(request, make_schedule(request), wanted) == paired);

  const auto refusal = [&](LoweringOptions asked) {
    return error_of([&] { lower(request, make_schedule(request), asked); });
  };
  LoweringOptions other = wanted;
  other.communicators = CommunicatorLayout::Edge;
  CHECK(refusal(other).find("/communicators: is pair, but pipeline.communicators is edge: "
                            "pipeline.communicators=pair fits") != std::string::npos);
  other = wanted;
  other.gradient_norm = true;
  CHECK(refusal(other).find("/ranks: has no NORM") != std::string::npos);
  other = wanted;
  other.zero = 1;
  CHECK(refusal(other).find("/ranks: has no GATHER") != std::string::npos);
  other = wanted;
  other.tied_stages = {0, 1};
  CHECK(refusal(other).find("/ranks: has no REDUCE_TIED, but stages 0, 1 share a weight") !=
        std::string::npos);
  const ScheduleChoice alone = lower(make("1f1b", 2, 4));
  CHECK(error_of([&] {
          lower(request_for(alone, 2, 4), make_schedule(request_for(alone, 2, 4)), {.replicas = 2});
        }).find("its gradients are not reduced over its replicas: each needs a 0REDUCE_GRAD") !=
        std::string::npos);
}

TEST_CASE("Choices with the same text are equal, two orders are not", "[plan][schedule]") {
  const ScheduleChoice one = newest_first;
  const ScheduleChoice copy = one;
  CHECK(one == copy);
  CHECK_FALSE(one == ScheduleChoice(newest_first));
  CHECK_FALSE(one == "own");
  CHECK(ScheduleChoice("zbv") == "zbv");
}

}  // namespace schedule_choice_test
