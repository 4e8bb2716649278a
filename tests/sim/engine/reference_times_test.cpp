#include <cmath>
#include <sstream>

#include "sim/support/equal_ranks.hpp"
#include "support/reference.hpp"

namespace reference_times_test {

// Orders of other projects, replayed: every action ends at the time given by their own clocks.

using namespace pipewright::plan;
using namespace pipewright::test;

std::vector<double> list_of(const std::string& text) {
  std::vector<double> list;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '/');)
    list.push_back(std::stod(part));
  return list;
}

/// Parses "f=1 b=1 w=1 c=0 m=4", where b is the input gradient.
ScheduleCosts costs_of(const std::string& setup) {
  std::map<std::string, std::vector<double>> lists;
  std::istringstream words(setup);
  for (std::string word; words >> word;)
    if (!word.starts_with("m="))
      lists[word.substr(0, word.find('='))] = list_of(word.substr(word.find('=') + 1));
  const auto of = [&](const char* letter, std::size_t stage) {
    const auto found = lists.find(letter);
    const std::vector<double> list = found == lists.end() ? std::vector{1.0} : found->second;
    return Seconds{list.at(list.size() == 1 ? 0 : stage)};
  };
  std::size_t stages = 1;
  for (const auto& [letter, list] : lists)
    stages = std::max(stages, list.size());
  ScheduleCosts costs{.stages = {}};
  for (std::size_t stage = 0; stage < stages; ++stage)
    costs.stages.push_back({of("f", stage), of("b", stage), of("w", stage)});
  if (lists.contains("c"))
    costs.transfer = {lists.at("c").at(0)};
  return costs;
}

Schedule schedule_of(const std::vector<std::vector<std::string>>& ranks) {
  std::string csv;
  for (const auto& row : ranks)
    for (std::size_t i = 0; i < row.size(); ++i)
      csv += row[i] + (i + 1 == row.size() ? "\n" : ",");
  return parse_csv(csv, "reference");
}

/// Returns the ends that the reference's own clock gives, by action.
std::map<std::string, std::map<std::string, double>> ends_by_configuration(
    const std::string& name) {
  std::map<std::string, std::map<std::string, double>> ends;
  for_each_row(name, [&](const ReferenceRow& row) {
    if (!row.at("action").empty() && !row.at("end").empty())
      ends[row.at("P") + "/" + row.at("M") + "/" + row.at("setup")][row.at("action")] =
          std::stod(row.at("end"));
  });
  return ends;
}

void replay(const std::string& name) {
  const auto ends = ends_by_configuration("schedules/" + name);
  std::size_t matching = 0;
  const auto references = reference_schedules("schedules/" + name, {"setup"});
  for (const ReferenceSchedule& reference : references) {
    const std::string setup = reference.columns.at("setup");
    const auto& expected =
        ends.at(reference.columns.at("P") + "/" + reference.columns.at("M") + "/" + setup);
    const Timeline timeline = timed(schedule_of(reference.ranks), costs_of(setup));
    std::size_t same = 0;
    for (const Span& span : timeline.spans)
      if (const auto end = expected.find(span.action); end != expected.end())
        same += std::abs(span.end.value - end->second) < 1e-6;
    INFO(name << ", P " << reference.columns.at("P") << ", M " << reference.columns.at("M") << ", "
              << setup);
    CHECK(same == expected.size());
    matching += same == expected.size();
  }
  report_equal(name, matching, references.size());
}

/// Returns the compute of a file that also has transfers, with rows whose clock starts after the
/// transfers were placed. Transfers and their validation are left out; the simulator has its own.
std::vector<std::vector<std::string>> compute_of(const ReferenceSchedule& reference) {
  std::vector<std::vector<std::string>> ranks;
  for (const auto& row : reference.ranks) {
    ranks.emplace_back();
    for (const std::string& cell : row)
      if (cell.find('_') == std::string::npos)
        ranks.back().push_back(cell.substr(0, cell.find('!')));
  }
  return ranks;
}

/// Returns costs for that project's clock, in which `b` is a full backward, not b + w, once
/// transfers are placed.
ScheduleCosts costs_with_transfers(const std::string& setup, const Schedule& schedule) {
  ScheduleCosts costs = costs_of(setup);
  for (const auto& actions : schedule.ranks)
    for (const Action& action : actions)
      if (action.kind == ActionKind::Backward)
        for (PassTimes& stage : costs.stages)
          stage.weight_gradient = {};
  return costs;
}

std::string case_of(const ReferenceRow& row) {
  return row.at("P") + "/" + row.at("M") + "/" + row.at("V") + "/" + row.at("setup");
}

void replay_with_transfers(const std::string& name) {
  std::map<std::string, std::map<std::string, double>> ends;
  for_each_row("schedules/" + name, [&](const ReferenceRow& row) {
    if (row.at("action").find('_') == std::string::npos && !row.at("end").empty())
      ends[case_of(row) + row.at("post_validation")][row.at("action")] = std::stod(row.at("end"));
  });
  std::size_t matching = 0;
  const auto references = reference_schedules("schedules/" + name, {"setup", "post_validation"});
  for (const ReferenceSchedule& reference : references) {
    const ReferenceRow& columns = reference.columns;
    const auto& expected = ends.at(case_of(columns) + columns.at("post_validation"));
    const Schedule schedule = schedule_of(compute_of(reference));
    const auto costs = costs_with_transfers(columns.at("setup"), schedule);
    std::size_t same = 0;
    for (const Span& span : timed(schedule, costs).spans)
      if (const auto end = expected.find(span.action); end != expected.end())
        same += std::abs(span.end.value - end->second) < 1e-6;
    INFO(name << ", " << case_of(columns));
    CHECK(same == expected.size());
    matching += same == expected.size();
  }
  report_equal(name, matching, references.size());
}

TEST_CASE("Every action of ZB ends at the time of zero-bubble's clock", "[sim][reference]") {
  replay("zerobubble_ZB.csv");
}
TEST_CASE("Every action of ZBV ends at the time of zero-bubble's clock", "[sim][reference]") {
  replay("zerobubble_ZBV.csv");
}
TEST_CASE("Every action of V-Half ends at the time of zero-bubble's clock", "[sim][reference]") {
  replay("zerobubble_V-Half.csv");
}
TEST_CASE("Every action of V-Min ends at the time of zero-bubble's clock", "[sim][reference]") {
  replay("zerobubble_V-Min.csv");
}
TEST_CASE("Every action of V-auto ends at the time of zero-bubble's clock", "[sim][reference]") {
  replay("zerobubble_V-auto.csv");
}

TEST_CASE("With its transfers placed, every compute action ends at the time of zero-bubble's clock",
          "[sim][reference]") {
  for (const std::string name :
       {"ZB", "ZBV", "V-Half", "V-Min", "1F1B", "1F1B-V", "Interleaved1F1B"})
    replay_with_transfers("zerobubble_comms_" + name + ".csv");
}

TEST_CASE("With its transfers placed, an order completes at the time of zero-bubble's clock",
          "[sim][reference]") {
  std::map<std::string, std::map<std::string, ReferenceSchedule>> orders;
  std::size_t matching = 0, all = 0;
  for_each_row("schedules/zerobubble_comms_check.csv", [&](const ReferenceRow& row) {
    const std::string& name = row.at("schedule");
    if (!orders.contains(name))
      for (const auto& reference :
           reference_schedules("schedules/zerobubble_" + name + ".csv", {"setup"}))
        orders[name].emplace(case_of(reference.columns), reference);
    const auto order = orders[name].find(case_of(row));
    if (order == orders[name].end() || row.at("last_completion").empty())
      return;
    const Schedule schedule = schedule_of(order->second.ranks);
    const double ours =
        timed(schedule, costs_with_transfers(row.at("setup"), schedule)).length.value;
    INFO(name << ", " << case_of(row));
    CHECK(ours == Approx(std::stod(row.at("last_completion"))).margin(1e-6));
    matching += std::abs(ours - std::stod(row.at("last_completion"))) < 1e-6;
    ++all;
  });
  report_equal("zerobubble_comms_check.csv", matching, all);
}

}  // namespace reference_times_test
