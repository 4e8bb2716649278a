#include <algorithm>
#include <cmath>

#include "pipewright/plan/schedules/schedule_counts.hpp"
#include "sim/support/equal_ranks.hpp"
#include "support/reference.hpp"

namespace schedule_simulators_test {

// Makespans of other schedule simulators, for orders that we generate ourselves.

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

/// Counts of the rows of a kind that agree, printed by the test.
struct Matches {
  std::size_t matching = 0, all = 0;
  void count(bool match) {
    matching += match;
    ++all;
  }
};

double most_activations(const Schedule& schedule, int chunks) {
  const auto units = peak_memory_units(schedule);  // two units per activation
  return 0.5 * *std::max_element(units.begin(), units.end()) / chunks;
}

ScheduleRequest request_of(const ReferenceRow& row, const std::string& name) {
  ScheduleRequest request;
  request.name = name;
  request.ranks = std::stoi(row.at("pp"));
  request.microbatches = std::stoi(row.at("microbatches"));
  request.chunks = std::stoi(row.at("vpp"));
  const auto of_chunk = [&](const char* column) {
    return Seconds{std::stod(row.at(column)) / request.chunks};
  };
  request.costs = equal_costs(of_chunk("F"), of_chunk("B"), of_chunk("W"));
  return request;
}

/// Parses "100MB @25GB/s+10us" between any two ranks, "10ms" and "20ms (B+W)" on each.
std::vector<StageCost> stages_of(const ReferenceRow& row) {
  StageCost cost;
  cost.forward = {std::stod(row.at("F")) * 1e-3};
  cost.input_gradient = {std::stod(row.at("B")) * 1e-3};
  cost.output = cost.input_gradient_bytes = {std::int64_t{1000000} * std::stoi(row.at("comm"))};
  return std::vector<StageCost>(std::stoul(row.at("pp")), cost);
}

Cluster cluster_of(const ReferenceRow& row) {
  const std::string& comm = row.at("comm");
  Cluster cluster;
  cluster.devices_per_node = std::stoi(row.at("pp"));
  cluster.within_node = {.latency = {std::stod(comm.substr(comm.find('+') + 1)) * 1e-6},
                         .bandwidth_per_s = std::stod(comm.substr(comm.find('@') + 1)) * 1e9};
  return cluster;
}

double seconds_of_1f1b(const ReferenceRow& row, TransferMode mode) {
  const Schedule schedule =
      make("1f1b", std::stoi(row.at("pp")), std::stoi(row.at("microbatches")));
  const auto outcome =
      simulate(lower(schedule, {.transfers = mode}), stages_of(row), cluster_of(row));
  return std::get<Completed>(outcome).timeline.length.value;
}

TEST_CASE(
    "Of the makespans in AMD Primus' schedule simulator seven are equal, V-Min's is one pass "
    "longer",
    "[sim][reference]") {
  const std::map<std::string, std::string> names{{"1F1B", "1f1b"},
                                                 {"ZB-1P", "zb-h1"},
                                                 {"interleaved-1F1B", "interleaved-1f1b"},
                                                 {"ZBV", "zbv"},
                                                 {"V-half", "v-half"},
                                                 {"V-min", "v-min"},
                                                 {"ZB-heuristic mem8", "zb-auto"},
                                                 {"ZB-heuristic mem10", "zb-auto"}};
  Matches matches;
  for_each_row("planners/schedule_reference.csv", [&](const ReferenceRow& row) {
    if (row.at("comm") != "0")
      return;
    const std::string& their_name = row.at("schedule");
    ScheduleRequest request = request_of(row, names.at(their_name));
    const double activations = std::stod(row.at("peak_activation_units"));
    if (request.name == "zb-auto")
      request.memory_units = 2 * static_cast<int>(activations);
    const Schedule schedule = make_schedule(request);
    const double ours = timed(schedule, request.costs).length.value;
    const double theirs = std::stod(row.at("makespan"));
    INFO(their_name);
    CHECK(most_activations(schedule, request.chunks) <= activations);
    // Its V-Min ends one forward of a chunk earlier than that of its authors: see below.
    CHECK(ours == theirs + (their_name == "V-min" ? request.costs.of(0).forward.value : 0));
    matches.count(ours == theirs);
  });
  CHECK(matches.all == names.size());
  report_equal("schedule_reference.csv", matches.matching, matches.all);
}

TEST_CASE("V-Min's bubble on eight ranks is its authors' 27 passes of a chunk; Primus has 26",
          "[sim][reference]") {
  const auto ours = [](int m) { return timed(make("v-min", 8, m), 1, 1, 1).length.value - 6 * m; };
  int full = 0;
  for_each_row("schedules/zerobubble_summary.csv", [&](const ReferenceRow& row) {
    if (row.at("schedule") != "V-Min" || row.at("P") != "8" || row.at("setup") != "f=1 b=1 w=1 c=0")
      return;
    const int m = std::stoi(row.at("M"));
    const double theirs = std::stod(row.at("makespan")) - std::stod(row.at("ideal_time"));
    INFO("M " << m);
    CHECK(ours(m) <= theirs);
    if (m < 8)
      return;  // the pipeline never fills
    CHECK(theirs == 27);
    CHECK(ours(m) == theirs);
    ++full;
  });
  CHECK(full > 0);
  CHECK(ours(32) == 27);  // the size of Primus' row: 109000 / 500 - 6 * 32 = 26
}

TEST_CASE("1F1B with transfers: SimGrid's activities are eager transfers, its mailboxes rendezvous",
          "[sim][reference]") {
  Matches matches;
  for_each_row("planners/schedule_reference.csv", [&](const ReferenceRow& row) {
    if (row.at("comm").find('@') == std::string::npos)
      return;
    const auto expect = [&](TransferMode mode, const std::string& printed) {
      const double ours = seconds_of_1f1b(row, mode), theirs = std::stod(printed);
      INFO("P " << row.at("pp") << ", " << to_string(mode));
      CHECK(ours == Approx(theirs).margin(5e-7));  // six decimals are printed
      matches.count(std::abs(ours - theirs) < 5e-7);
    };
    const std::string& source = row.at("source");
    expect(TransferMode::Eager, row.at("makespan"));
    expect(TransferMode::Rendezvous, source.substr(source.rfind(' ', source.size() - 3)));
  });
  CHECK(matches.all == 4);
  report_equal("schedule_reference.csv", matches.matching, matches.all);
}

}  // namespace schedule_simulators_test
