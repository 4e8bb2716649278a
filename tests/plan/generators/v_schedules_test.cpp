#include "pipewright/plan/generators/v_schedules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <tuple>

#include "pipewright/plan/schedules/placement_of.hpp"
#include "pipewright/plan/schedules/validate_schedule.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/reference.hpp"

namespace v_schedules_test {

using namespace pipewright::plan;
using pipewright::test::error_of;
using pipewright::test::for_each_row;
using pipewright::test::reference_schedules;
using pipewright::test::ReferenceRow;
using pipewright::test::report_equal;

/// Returns the value after `name=` in a setup such as "f=10 b=12 w=8 c=1 m=16".
std::optional<double> value_in(const std::string& setup, const std::string& name) {
  std::istringstream in(setup);
  for (std::string word; in >> word;)
    if (word.rfind(name + "=", 0) == 0)
      return std::stod(word.substr(name.size() + 1));
  return {};
}

double duration(const Action& action, const ScheduleCosts& costs) {
  return action.kind == ActionKind::Forward         ? costs.of(action.stage).forward.value
         : action.kind == ActionKind::InputGradient ? costs.of(action.stage).input_gradient.value
                                                    : costs.of(action.stage).weight_gradient.value;
}

/// The longest time from a rank's first start to its last end, and the latest end of all ranks.
struct Times {
  double makespan = 0;
  double end = 0;
};

/// Times a schedule: every rank runs its list in order, and an action starts once its rank is free
/// and its inputs have arrived. It is independent of the generators' own clock.
Times times_of(const Schedule& schedule, const ScheduleCosts& costs) {
  const int last = stage_count(schedule) - 1;
  const std::vector<int> ranks = placement_of(schedule).routes.front();
  std::map<std::tuple<ActionKind, int, int>, double> ends;
  std::vector<std::size_t> next(schedule.ranks.size());
  std::vector<double> first(schedule.ranks.size()), free_at(schedule.ranks.size());
  std::size_t left = 0;
  for (const auto& actions : schedule.ranks)
    left += actions.size();
  // Returns when the action's inputs are available on the rank, if that is known.
  const auto ready = [&](const Action& a, int rank) -> std::optional<double> {
    std::vector<std::tuple<ActionKind, int, int>> needs;
    if (a.kind == ActionKind::Forward && a.stage > 0)
      needs.push_back({a.kind, a.stage - 1, a.microbatch});
    if (a.kind == ActionKind::InputGradient)
      needs.push_back({ActionKind::Forward, a.stage, a.microbatch});
    if (a.kind == ActionKind::InputGradient && a.stage < last)
      needs.push_back({a.kind, a.stage + 1, a.microbatch});
    if (a.kind == ActionKind::WeightGradient)
      needs.push_back({ActionKind::InputGradient, a.stage, a.microbatch});
    double time = 0;
    for (const auto& need : needs) {
      if (!ends.count(need))
        return {};
      const bool local = ranks[static_cast<std::size_t>(std::get<1>(need))] == rank;
      time = std::max(time, ends[need] + (local ? 0 : costs.transfer.value));
    }
    return time;
  };
  while (left > 0) {
    const std::size_t before = left;
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r)
      while (next[r] < schedule.ranks[r].size()) {
        const Action& action = schedule.ranks[r][next[r]];
        const auto at_hand = ready(action, static_cast<int>(r));
        if (!at_hand)
          break;
        const double start = std::max(free_at[r], *at_hand);
        if (next[r]++ == 0)
          first[r] = start;
        free_at[r] = start + duration(action, costs);
        ends[{action.kind, action.stage, action.microbatch}] = free_at[r];
        --left;
      }
    REQUIRE(left < before);
  }
  Times times;
  for (std::size_t r = 0; r < free_at.size(); ++r) {
    times.makespan = std::max(times.makespan, free_at[r] - first[r]);
    times.end = std::max(times.end, free_at[r]);
  }
  return times;
}

/// Returns each rank's peak activations if a forward adds `forward`, an input gradient frees
/// `input_gradient` and a weight gradient the rest.
std::vector<int> peaks_of(const Schedule& schedule, int forward, int input_gradient) {
  std::vector<int> peaks;
  for (const auto& actions : schedule.ranks) {
    int kept = 0, peak = 0;
    for (const Action& action : actions) {
      kept += action.kind == ActionKind::Forward         ? forward
              : action.kind == ActionKind::InputGradient ? -input_gradient
                                                         : input_gradient - forward;
      peak = std::max(peak, kept);
    }
    peaks.push_back(peak);
  }
  return peaks;
}

bool at_most(const std::vector<int>& ours, const std::vector<int>& theirs) {
  return std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(), std::less_equal<>());
}

/// P, M and setup.
using TableRow = std::tuple<int, int, std::string>;

std::map<TableRow, double> read_makespans(const std::string& schedule) {
  std::map<TableRow, double> makespans;
  for_each_row("schedules/zerobubble_summary.csv", [&](const ReferenceRow& row) {
    if (row.at("schedule") == schedule)
      makespans[{std::stoi(row.at("P")), std::stoi(row.at("M")), row.at("setup")}] =
          std::stod(row.at("makespan"));
  });
  return makespans;
}

/// Reads the orders, which exist for a part of the rows.
std::map<TableRow, Schedule> read_orders(const std::string& schedule) {
  std::map<TableRow, Schedule> orders;
  for (const auto& found :
       reference_schedules("schedules/zerobubble_" + schedule + ".csv", {"setup"})) {
    Schedule& order = orders[{found.number("P"), found.number("M"), found.columns.at("setup")}];
    order.microbatches = found.number("M");
    for (const auto& row : found.ranks) {
      auto& actions = order.ranks.emplace_back();
      for (const std::string& cell : row)
        actions.push_back(parse_action(cell).value());
    }
  }
  return orders;
}

using Make = Schedule (*)(int, int, const ScheduleCosts&, std::optional<int>);

void check_no_worse(const std::string& name, Make make) {
  const auto makespans = read_makespans(name);
  const auto orders = read_orders(name);
  std::size_t equal = 0, shorter = 0, compared_orders = 0;
  for (const auto& [row, makespan] : makespans) {
    const auto& [ranks, microbatches, setup] = row;
    INFO("P " << ranks << " M " << microbatches << " " << setup);
    const ScheduleCosts costs = equal_costs({*value_in(setup, "f")}, {*value_in(setup, "b")},
                                            {*value_in(setup, "w")}, {*value_in(setup, "c")});
    const auto limit = value_in(setup, "m");
    const Schedule ours = make(ranks, microbatches, costs,
                               limit ? std::optional<int>(static_cast<int>(*limit)) : std::nullopt);
    validate(ours);
    const Times times = times_of(ours, costs);
    CHECK(times.makespan <= makespan);
    ++(times.makespan < makespan ? shorter : equal);
    const auto peaks = peaks_of(ours, 2, 1);
    if (limit)
      CHECK(*std::max_element(peaks.begin(), peaks.end()) <= *limit);
    if (const auto found = orders.find(row); found != orders.end()) {
      const Times theirs = times_of(found->second, costs);
      CHECK(theirs.makespan == makespan);
      CHECK(times.end <= theirs.end);
      CHECK(at_most(peaks, peaks_of(found->second, 2, 1)));
      CHECK(at_most(peaks_of(ours, 1, 0), peaks_of(found->second, 1, 0)));
      ++compared_orders;
    }
  }
  report_equal(name, equal, makespans.size(), fmt::format("{} are better", shorter));
  CHECK(compared_orders == orders.size());
}

/// Returns the most that any rank keeps, in units.
int peak_units(const Schedule& schedule) {
  const auto peaks = peaks_of(schedule, 2, 1);
  return *std::max_element(peaks.begin(), peaks.end());
}

template <class Body>
void for_each_size(const Body& body) {
  for (const int ranks : {1, 2, 3, 4, 6, 8, 16})
    for (const int microbatches : {1, 2, 4, 6, 8, 12, 16, 32, 64}) {
      INFO("P " << ranks << " M " << microbatches);
      body(ranks, microbatches);
    }
}

/// Equal costs, costs measured for a GPT, and costs with zeros.
const std::vector<ScheduleCosts> some_costs{equal_costs({1}, {1}, {1}),
                                            equal_costs({10}, {12}, {8}, {1}),
                                            equal_costs({1}, {0}, {1}), equal_costs({0}, {0}, {0})};

TEST_CASE("V-Half: the second microbatch comes back up before the first continues",
          "[plan][schedule]") {
  CHECK(to_string(make_v_half(2, 2)) ==
        "0F0 0F1 3F0 3I0 3W0 3F1 0I0 3I1 0W0 3W1 0I1 0W1\n"
        "1F0 2F0 1F1 2F1 2I0 1I0 2W0 1W0 2I1 1I1 2W1 1W1\n");
}

TEST_CASE("V-Min: the second microbatch turns around after the first", "[plan][schedule]") {
  CHECK(to_string(make_v_min(2, 2)) ==
        "0F0 0F1 3F0 3I0 3W0 0I0 3F1 3I1 0W0 3W1 0I1 0W1\n"
        "1F0 2F0 1F1 2I0 1I0 2F1 2W0 1W0 2I1 1I1 2W1 1W1\n");
}

TEST_CASE("ZB-V: weight gradients wait until the end", "[plan][schedule]") {
  CHECK(to_string(make_v_zb(2, 2)) ==
        "0F0 0F1 3F0 3I0 3F1 3I1 0I0 3W0 0I1 3W1 0W0 0W1\n"
        "1F0 2F0 1F1 2F1 2I0 1I0 2I1 1I1 2W0 1W0 2W1 1W1\n");
}

TEST_CASE("V-Half and V-Min are valid and within their bounds", "[plan][schedule]") {
  for_each_size([](int ranks, int microbatches) {
    for (const ScheduleCosts& costs : some_costs) {
      const Schedule half = make_v_half(ranks, microbatches, costs);
      validate(half);
      CHECK(peak_units(half) <= 4 * (ranks / 2) + 4);
      const Schedule min = make_v_min(ranks, microbatches, costs);
      validate(min);
      CHECK(peak_units(min) <= 4 * ((ranks + 4) / 3));
    }
  });
}

TEST_CASE("ZB-V is valid under every limit", "[plan][schedule]") {
  for_each_size([](int ranks, int microbatches) {
    for (const ScheduleCosts& costs :
         {equal_costs({10}, {12}, {8}, {1}), equal_costs({1}, {0}, {1})})
      for (const int limit : {4, std::max(4, 2 * ranks + 1), std::max(4, 3 * ranks), 4 * ranks}) {
        const Schedule schedule = make_v_zb(ranks, microbatches, costs, limit);
        validate(schedule);
        CHECK(peak_units(schedule) <= limit);
      }
  });
}

TEST_CASE("ZB-V: no bubble from 2P - 1 microbatches on", "[plan][schedule]") {
  for_each_size([](int ranks, int microbatches) {
    if (microbatches >= 2 * ranks - 1)
      CHECK(times_of(make_v_zb(ranks, microbatches), {}).makespan == 6 * microbatches);
  });
}

TEST_CASE("V schedules: impossible requests are rejected with an error message",
          "[plan][schedule]") {
  CHECK(error_of([] { make_v_half(0, 1); }) == "v-half: 0 ranks asked for, the least is 1");
  CHECK(error_of([] { make_v_min(1, 0); }) == "v-min: 0 microbatches asked for, the least is 1");
  CHECK(error_of([] { make_v_zb(1, 1, equal_costs({-2}, {1}, {1})); }) ==
        "v-zb: the time of F is -2; the least is 0, and it must be finite");
  CHECK(error_of([] { make_v_zb(4, 8, {}, 3); }) ==
        "v-zb: a limit of 3 units asked for, the least is 4: one microbatch in both stages of a "
        "rank");
}

TEST_CASE("V-Half: no longer and no larger than the reference's orders",
          "[plan][schedule][reference]") {
  check_no_worse("V-Half",
                 [](int ranks, int microbatches, const ScheduleCosts& costs, std::optional<int>) {
                   return make_v_half(ranks, microbatches, costs);
                 });
}

TEST_CASE("V-Min: no longer and no larger than the reference's orders",
          "[plan][schedule][reference]") {
  check_no_worse("V-Min",
                 [](int ranks, int microbatches, const ScheduleCosts& costs, std::optional<int>) {
                   return make_v_min(ranks, microbatches, costs);
                 });
}

TEST_CASE("ZB-V: no longer and no larger than the reference's orders",
          "[plan][schedule][reference]") {
  check_no_worse("ZBV", make_v_zb);
}

}  // namespace v_schedules_test
