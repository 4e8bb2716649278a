// Checks the descriptors against the schedules themselves.

#include "pipewright/plan/generators/schedule_catalog.hpp"

#include <map>
#include <set>

#include "pipewright/plan/bare_name.hpp"
#include "pipewright/plan/schedules/placement_of.hpp"
#include "support/catch.hpp"
#include "support/make_schedule.hpp"

namespace schedule_catalog_test {

using namespace pipewright::plan;
using pipewright::test::make;

/// Makes a schedule for four ranks and eight microbatches, with its minimum number of chunks.
GeneratedSchedule smallest(const ScheduleDescriptor& entry) {
  ScheduleRequest request;
  request.name = entry.name;
  request.ranks = 4;
  request.microbatches = 8;
  request.chunks = usual_chunks(entry.chunks).front();
  return make_with_findings(request);
}

TEST_CASE("Each name, class and alias means one schedule", "[plan][schedule]") {
  std::map<std::string, std::string> schedule_of;
  int aliases = 0;
  for (const ScheduleDescriptor& entry : schedules()) {
    CAPTURE(entry.name);
    REQUIRE(schedule_of.emplace(bare_name(entry.name), entry.name).second);
    // torch's name may equal ours.
    if (!entry.torch_class.empty())
      CHECK(schedule_of.emplace(bare_name(entry.torch_class), entry.name).first->second ==
            entry.name);
  }
  for (const ScheduleDescriptor& entry : schedules()) {
    for (const std::string& alias : entry.aliases) {
      CAPTURE(entry.name, alias);
      CHECK(schedule_of.emplace(bare_name(alias), entry.name).second);
      ++aliases;
    }
    for (const NamedLimit& limit : entry.named_limits) {
      CAPTURE(entry.name, limit.name);
      CHECK(schedule_of.emplace(bare_name(limit.name), limit.name).second);
      CHECK(entry.takes_memory_units);
      CHECK(limit.memory_units(3) == 6 * limit.microbatches);
    }
  }
  CHECK(aliases > 10);
  CHECK_FALSE(schedule_of.contains(""));
}

TEST_CASE("The default schedule is Megatron-LM's for these chunks and rounds", "[plan][schedule]") {
  CHECK(default_schedule().name == "1f1b");
  CHECK(default_schedule(1, 4).name == "1f1b");
  CHECK(default_schedule(2).name == "interleaved-1f1b");
  CHECK(default_schedule(2, 4).name == "megatron-interleaved");
  CHECK(ScheduleChoice().name == default_schedule().name);
  CHECK(schedule_name({.chunks = 3, .schedule = "", .group = 6}) == "megatron-interleaved");
  CHECK(schedule_name({.chunks = 2, .schedule = "zbv", .group = 0}) == "zbv");
  std::set<std::pair<Chunks, bool>> kinds;
  for (const ScheduleDescriptor& entry : schedules())
    if (entry.runs_in_megatron)
      CHECK(kinds.emplace(entry.chunks, entry.takes_group).second);
  CHECK(kinds.size() == 3);
}

TEST_CASE("The planner chooses unidirectional schedules that train the batch without a search",
          "[plan][schedule]") {
  std::map<Planned, int> count;
  for (const ScheduleDescriptor& entry : schedules()) {
    CAPTURE(entry.name);
    ++count[entry.planned];
    if (entry.planned == Planned::No)
      continue;
    CHECK(entry.trains_batch());
    CHECK_FALSE(entry.orders_by_times);
    CHECK_FALSE(placement_of(smallest(entry).schedule).is_bidirectional());
  }
  CHECK(count[Planned::ByDefault] == 4);
  CHECK(count[Planned::OnRequest] == 3);
}

TEST_CASE("A schedule has the properties of its descriptor", "[plan][schedule]") {
  int with_copies = 0;
  for (const ScheduleDescriptor& entry : schedules()) {
    CAPTURE(entry.name);
    const GeneratedSchedule made = smallest(entry);
    CHECK(made.stream.has_value() == entry.is_instruction_stream);
    CHECK(is_forward_only(made.schedule) == entry.is_forward_only);
    if (entry.bubble_is_of_span)
      CHECK(entry.steps_by_rank);
    if (entry.make_with_copies) {
      ++with_copies;
      CHECK(entry.make_with_copies({1, 1, 1, 1}, 8) == made.schedule);
    }
  }
  CHECK(with_copies == 1);
}

}  // namespace schedule_catalog_test
