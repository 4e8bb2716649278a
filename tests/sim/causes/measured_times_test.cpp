#include "pipewright/sim/causes/measured_times.hpp"

#include <cmath>
#include <map>
#include <random>

#include "pipewright/sim/causes/idle.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "sim/support/random_costs.hpp"
#include "sim/support/structures.hpp"
#include "support/error_of.hpp"

namespace measured_times_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

TEST_CASE("A timeline with the predicted times has the predicted causes of idle time",
          "[sim][measured]") {
  std::mt19937 random(47);
  const int structures = for_each_structure([&](const Structure& structure) {
    Simulator simulator(structure);
    const Times& times = simulator.run(random_costs(structure.program(), random, 1));
    IdleCauses predicted(structure), measured(structure);
    const IdleTime& expected = predicted.of(times);
    const IdleTime& found = measured.of(times_of(structure, timeline_of(structure, times)));
    for (std::size_t rank = 0; rank < expected.by_cause.size(); ++rank)
      for (std::size_t cause = 0; cause < idle_cause_count; ++cause)
        REQUIRE(std::abs(expected.by_cause[rank][cause] - found.by_cause[rank][cause]) <=
                1e-12 * times.iteration);
  });
  CHECK(structures > 500);
}

/// Returns a measured timeline of 1F1B on two ranks with one microbatch.
Timeline measured() {
  const auto span = [](int rank, Row row, const char* action, double start, double end) {
    return Span{rank, row, action, {start}, {end}};
  };
  using enum Row;
  return {.name = "measured",
          .ranks = 2,
          .length = {20},
          .spans = {span(0, Compute, "0LOAD0", 1, 1), span(0, Compute, "0F0", 1, 3),
                    span(0, Send, "0SEND_F0", 3, 3.1), span(0, Receive, "0RECV_B0", 3.1, 12),
                    span(0, Compute, "0B0", 13, 17), span(0, Compute, "0STEP", 18, 19),
                    span(1, Receive, "1RECV_F0", 0, 4), span(1, Compute, "1LOAD0", 0, 0),
                    span(1, Compute, "1F0", 4.5, 6), span(1, Compute, "1B0", 6.25, 10),
                    span(1, Send, "1SEND_B0", 10.5, 10.6), span(1, Compute, "1STEP", 10.75, 11)},
          .memory = {}};
}

TEST_CASE("Of two overlapping actions in a pair the second counts from the end of the first",
          "[sim][measured]") {
  const Structure structure(
      lower(parse_csv("0F0,(0F1;0B0)OVERLAP_F_B,(0F2;0B1)OVERLAP_F_B,0B2\n", "pairs.csv")));
  Timeline timeline{.name = "measured", .ranks = 1, .length = {12}, .spans = {}, .memory = {}};
  const std::map<std::string, std::pair<double, double>> spans{{"0F0", {0, 1}}, {"0F1", {1, 4}},
                                                               {"0B0", {2, 6}}, {"0F2", {6, 9}},
                                                               {"0B1", {7, 8}}, {"0B2", {10, 12}}};
  for (const Instruction& i : structure.program().ranks[0]) {
    const auto found = spans.find(to_string(i));
    const auto [start, end] = found == spans.end() ? std::pair{0.0, 0.0} : found->second;
    timeline.spans.push_back({0, row_of(i.kind), to_string(i), {start}, {end}});
  }
  const Times times = times_of(structure, timeline);
  const auto of = [&](const char* action) {
    for (int event = 0; event < structure.size(); ++event)
      if (to_string(*structure.events()[event].instruction) == action)
        return std::pair{times[event].start, times[event].end};
    return std::pair{-1.0, -1.0};
  };
  CHECK(of("0F1") == std::pair{1.0, 4.0});
  CHECK(of("0B0") == std::pair{4.0, 6.0});
  CHECK(of("0F2") == std::pair{6.0, 9.0});
  CHECK(of("0B1") == std::pair{9.0, 9.0});  // it had already ended
  CHECK(of("0B2") == std::pair{10.0, 12.0});
}

TEST_CASE("Idle time without another cause is launch; all causes add up to the idle time",
          "[sim][measured]") {
  const Structure structure(lower(make("1f1b", 2, 1)));
  const Timeline found = with_idle_causes(structure, measured());
  std::string text;
  std::vector<Seconds> idle(2);
  for (const IdleSpan& span : found.idle) {
    text += fmt::format("{}: {} {}..{}\n", span.rank, to_string(span.cause), span.start.value,
                        span.end.value);
    idle[static_cast<std::size_t>(span.rank)] += span.end - span.start;
  }
  CHECK(text ==
        "0: launch 0..1\n"
        "0: warm-up 3..10\n"   // 1B0 computes
        "0: queue 10..10.5\n"  // until it is sent
        "0: transfer 10.5..12\n"
        "0: launch 12..13\n"
        "0: launch 17..18\n"
        "0: cool-down 19..20\n"
        "1: warm-up 0..3\n"
        "1: transfer 3..4\n"
        "1: launch 4..4.5\n"
        "1: launch 6..6.25\n"
        "1: launch 10..10.75\n"
        "1: cool-down 11..20\n");
  CHECK(idle == bubble_per_rank(found));
}

TEST_CASE("Data that were sent long before their receive started delay no action",
          "[sim][measured]") {
  const Structure structure(lower(make("1f1b", 2, 1)));
  const auto holds_up = [&](double receive_from) {
    Timeline timeline = measured();
    for (Span& span : timeline.spans)
      if (span.action == "1RECV_F0")
        span.start = {receive_from};  // it ends at 4, and was sent at 3
    const auto path = measured_critical_path(structure, times_of(structure, timeline));
    return std::any_of(path.begin(), path.end(), [&](int event) {
      return to_string(*structure.events()[event].instruction) == "0SEND_F0";
    });
  };
  CHECK(holds_up(0));
  CHECK(holds_up(3.4));
  CHECK(!holds_up(3.9));
}

TEST_CASE("Spans of one name are matched in the order of time, wherever they are in the file",
          "[sim][measured]") {
  Program twice = lower(make("1f1b", 1, 1));
  twice.ranks[0].push_back(twice.ranks[0].back());
  REQUIRE(to_string(twice.ranks[0].back()) == "0STEP");
  const Structure structure(twice);
  Timeline timeline{.name = "", .ranks = 1, .length = {9}, .spans = {}, .memory = {}};
  for (const auto& [action, start] :
       {std::pair("0STEP", 7), {"0B0", 3}, {"0F0", 1}, {"0STEP", 5}, {"0LOAD0", 0}})
    timeline.spans.push_back(
        {0, Row::Compute, action, {static_cast<double>(start)}, {static_cast<double>(start) + 1}});
  std::string text;
  for (int event = 0; const std::size_t span : spans_of(structure, timeline))
    text += fmt::format("{}: {}\n", to_string(*structure.events()[event++].instruction), span);
  CHECK(text ==
        "0LOAD0: 4\n"
        "0F0: 2\n"
        "0B0: 1\n"
        "0STEP: 3\n"
        "0STEP: 0\n");
}

TEST_CASE("A timeline of another run is rejected", "[sim][measured]") {
  const Structure structure(lower(make("1f1b", 2, 1)));
  const auto refusal = [&](const Timeline& timeline) {
    return error_of([&] { times_of(structure, timeline); });
  };
  Timeline lacking = measured();
  lacking.spans.erase(lacking.spans.begin() + 1);
  CHECK(refusal(lacking) ==
        "the timeline has no span of 0F0 on rank 0, which the program runs: they are not from the "
        "same run");
  Timeline more = measured();
  more.spans.push_back({1, Row::Compute, "1F1", {12}, {13}});
  CHECK(refusal(more) ==
        "the timeline has 1F1 on rank 1, which the program does not run there: they are not from "
        "the same run");
  Timeline three = measured();
  three.ranks = 3;
  CHECK(refusal(three) == "the timeline has 3 ranks, but the program has 2");
}

}  // namespace measured_times_test
