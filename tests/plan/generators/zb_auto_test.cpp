#include "pipewright/plan/generators/zb_auto.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/plan/schedules/validate_schedule.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/reference.hpp"
#include "support/sanitized.hpp"

namespace zb_auto_test {

using namespace pipewright::plan;
using pipewright::test::error_of;
using pipewright::test::for_each_row;
using pipewright::test::ReferenceRow;
using pipewright::test::report_equal;

constexpr double never = std::numeric_limits<double>::infinity();

/// Input of zb-auto.
struct Setup {
  ScheduleCosts costs;
  std::vector<int> memory_units{};
};

Setup equal_stages(double f, double i, double w, double c, std::vector<int> memory = {}) {
  return {equal_costs({f}, {i}, {w}, {c}), std::move(memory)};
}

ZeroBubblePlan make(int stages, int microbatches, const Setup& setup) {
  return make_zb_auto(stages, microbatches, setup.costs, setup.memory_units);
}

/// Times a schedule by definition: every rank runs strictly in order, each action once the rank is
/// free and the neighbor's result has arrived. Infinite if it never ends.
class Clock {
 public:
  Clock(const Schedule& schedule, const ScheduleCosts& costs)
      : schedule_(schedule),
        costs_(costs),
        stages_(static_cast<int>(schedule.ranks.size())),
        forward_ends_(stages_, std::vector<double>(schedule.microbatches, never)),
        gradient_ends_(forward_ends_),
        done_(stages_),
        starts_(stages_),
        ends_(stages_) {}

  double longest_span() {
    for (bool moved = true; std::exchange(moved, false);)
      for (int stage = 0; stage < stages_; ++stage)
        while (done_[stage] < schedule_.ranks[stage].size() && run_next(stage))
          moved = true;
    double longest = 0;
    for (int stage = 0; stage < stages_; ++stage) {
      const bool ended = done_[stage] == schedule_.ranks[stage].size();
      longest = std::max(longest, ended ? ends_[stage] - starts_[stage] : never);
    }
    return longest;
  }

 private:
  bool run_next(int stage) {
    const Action& action = schedule_.ranks[stage][done_[stage]];
    double arrival = 0;
    if (action.kind == ActionKind::Forward && stage > 0)
      arrival = forward_ends_[stage - 1][action.microbatch] + costs_.transfer.value;
    if (action.kind == ActionKind::InputGradient && stage + 1 < stages_)
      arrival = gradient_ends_[stage + 1][action.microbatch] + costs_.transfer.value;
    if (arrival == never)
      return false;
    double& end = ends_[stage];
    end = std::max(end, arrival);
    if (done_[stage]++ == 0)
      starts_[stage] = end;
    if (action.kind == ActionKind::Forward)
      forward_ends_[stage][action.microbatch] = end += costs_.of(stage).forward.value;
    else if (action.kind == ActionKind::InputGradient)
      gradient_ends_[stage][action.microbatch] = end += costs_.of(stage).input_gradient.value;
    else
      end += costs_.of(stage).weight_gradient.value;
    return true;
  }

  const Schedule& schedule_;
  const ScheduleCosts& costs_;
  int stages_;
  std::vector<std::vector<double>> forward_ends_;  // by stage and microbatch
  std::vector<std::vector<double>> gradient_ends_;
  std::vector<std::size_t> done_;
  std::vector<double> starts_;
  std::vector<double> ends_;
};

int peak_units(const std::vector<Action>& actions) {
  int held = 0;
  int peak = 0;
  for (const Action& action : actions) {
    held += action.kind == ActionKind::Forward ? 2 : -1;
    peak = std::max(peak, held);
  }
  return peak;
}

/// Returns every order of one stage that keeps the microbatches of each kind in order and the
/// memory limit.
std::vector<std::vector<Action>> all_orders(int stage, int microbatches, int limit) {
  std::vector<std::vector<Action>> orders;
  std::string letters;
  for (const char letter : {'F', 'I', 'W'})
    letters.append(microbatches, letter);
  do {
    std::map<char, int> next;
    std::vector<Action> actions;
    bool sound = true;
    for (const char letter : letters) {
      const ActionKind kind = letter == 'F'   ? ActionKind::Forward
                              : letter == 'I' ? ActionKind::InputGradient
                                              : ActionKind::WeightGradient;
      actions.push_back({kind, stage, next[letter]++});
      sound = sound && next['W'] <= next['I'] && next['I'] <= next['F'];
    }
    if (sound && peak_units(actions) <= limit)
      orders.push_back(actions);
  } while (std::next_permutation(letters.begin(), letters.end()));
  return orders;
}

/// Returns the shortest longest span of all schedules that extend `schedule` to the remaining
/// ranks.
double optimum(Schedule& schedule, const ScheduleCosts& costs,
               const std::vector<std::vector<std::vector<Action>>>& orders) {
  const std::size_t stage = schedule.ranks.size();
  if (stage == orders.size())
    return Clock(schedule, costs).longest_span();
  double best = never;
  for (const auto& order : orders[stage]) {
    schedule.ranks.push_back(order);
    best = std::min(best, optimum(schedule, costs, orders));
    schedule.ranks.pop_back();
  }
  return best;
}

double optimum(int stages, int microbatches, const Setup& setup) {
  std::vector<std::vector<std::vector<Action>>> orders;
  for (int stage = 0; stage < stages; ++stage)
    orders.push_back(
        all_orders(stage, microbatches,
                   setup.memory_units.empty() ? 2 * microbatches : setup.memory_units[0]));
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  return optimum(schedule, setup.costs, orders);
}

std::vector<Seconds> parse_times(const std::string& text) {
  std::vector<Seconds> times;
  std::istringstream in(text);
  for (std::string time; std::getline(in, time, '/');)
    times.push_back({std::stod(time)});
  return times;
}

/// Parses "f=5 b=6/7 w=4 c=1 m=none" of the reference files, in which b means I.
Setup parse_setup(const std::string& text) {
  std::map<std::string, std::string> values;
  std::istringstream in(text);
  for (std::string word; in >> word;)
    values[word.substr(0, 1)] = word.substr(2);
  const auto f = parse_times(values["f"]), i = parse_times(values["b"]),
             w = parse_times(values["w"]);
  Setup setup{{.stages = {}, .transfer = {std::stod(values["c"])}}};
  const auto of = [](const std::vector<Seconds>& list, std::size_t stage) {
    return list[list.size() == 1 ? 0 : stage];
  };
  for (std::size_t stage = 0; stage < std::max({f.size(), i.size(), w.size()}); ++stage)
    setup.costs.stages.push_back({of(f, stage), of(i, stage), of(w, stage)});
  if (values["m"] != "none")
    setup.memory_units = {std::stoi(values["m"])};
  return setup;
}

struct Span {
  int stages = 0;
  int microbatches = 0;
  std::string setup;
  double seconds = 0;
};

/// Reads the rows of one schedule, with the span in the given column.
std::vector<Span> read_spans(const std::string& name, const std::string& schedule,
                             const std::string& column) {
  std::vector<Span> spans;
  for_each_row("schedules/" + name, [&](const ReferenceRow& row) {
    if (row.at("schedule") == schedule)
      spans.push_back({.stages = std::stoi(row.at("P")),
                       .microbatches = std::stoi(row.at("M")),
                       .setup = row.at("setup"),
                       .seconds = std::stod(row.at(column))});
  });
  return spans;
}

TEST_CASE("zb-auto: with enough memory, equal times leave no bubble", "[plan][schedule]") {
  const ZeroBubblePlan plan = make(2, 4, equal_stages(1, 1, 1, 0));
  CHECK(to_string(plan.schedule) ==
        "0F0 0F1 0F2 0I0 0F3 0I1 0W0 0I2 0W1 0I3 0W2 0W3\n"
        "1F0 1I0 1F1 1I1 1F2 1I2 1F3 1I3 1W0 1W1 1W2 1W3\n");
  CHECK(plan.longest_span == Seconds{12});
  CHECK(plan.lower_bound == Seconds{12});
}

TEST_CASE("zb-auto: memory for one microbatch lets no two overlap", "[plan][schedule]") {
  const ZeroBubblePlan plan = make(2, 2, equal_stages(1, 1, 1, 0, {2}));
  CHECK(to_string(plan.schedule) ==
        "0F0 0I0 0W0 0F1 0I1 0W1\n"
        "1F0 1I0 1W0 1F1 1I1 1W1\n");
  CHECK(plan.longest_span == Seconds{10});
  CHECK(plan.lower_bound == Seconds{10});
}

TEST_CASE("zb-auto is optimal where all schedules can be tried", "[plan][schedule]") {
  const Setup unequal{
      {.stages = {{{9}, {14}, {6}}, {{13}, {8}, {9}}, {{7}, {10}, {7}}}, .transfer = {1}}, {4}};
  for (const auto& setup : {equal_stages(1, 1, 1, 0, {4}), equal_stages(3, 2, 5, 1, {2}),
                            equal_stages(2, 7, 3, 1, {4}), equal_stages(6, 2, 9, 0, {5}),
                            equal_stages(4, 8, 4, 2, {3}), equal_stages(1, 3, 2, 4), unequal})
    for (const auto& [stages, microbatches] : {std::pair(2, 3), std::pair(2, 4), std::pair(3, 3)}) {
      Setup of_stages = setup;
      if (setup.costs.stages.size() > 1)
        of_stages.costs.stages.resize(static_cast<std::size_t>(stages));
      CAPTURE(stages, microbatches, setup.costs.of(0).forward.value, setup.memory_units);
      CHECK(make(stages, microbatches, of_stages).longest_span.value ==
            optimum(stages, microbatches, of_stages));
    }
}

TEST_CASE("zb-auto reaches the optimum of the integer program", "[plan][schedule][reference]") {
  const auto optima = read_spans("zerobubble_ilp.csv", "ZB-ILP", "ilp_makespan");
  std::size_t equal = 0;
  for (const Span& optimum : optima) {
    CAPTURE(optimum.stages, optimum.microbatches, optimum.setup);
    const double span =
        make(optimum.stages, optimum.microbatches, parse_setup(optimum.setup)).longest_span.value;
    CHECK(span == optimum.seconds);
    equal += span == optimum.seconds;
  }
  report_equal("zerobubble_ilp.csv", equal, optima.size());
}

TEST_CASE("zb-auto is never worse than the published heuristic", "[plan][schedule][reference]") {
  std::size_t all = 0, equal = 0, better = 0, proven = 0;
  for (const Span& theirs : read_spans("zerobubble_summary.csv", "ZB", "makespan")) {
    if (pipewright::test::sanitized && theirs.microbatches > 8)
      continue;
    const auto plan = make(theirs.stages, theirs.microbatches, parse_setup(theirs.setup));
    CAPTURE(theirs.stages, theirs.microbatches, theirs.setup);
    CHECK(plan.longest_span.value <= theirs.seconds);
    equal += plan.longest_span.value == theirs.seconds;
    better += plan.longest_span.value < theirs.seconds;
    proven += plan.longest_span == plan.lower_bound;
    ++all;
  }
  report_equal("zerobubble_summary.csv", equal, all,
               fmt::format("{} are better, {} at the lower bound", better, proven));
}

TEST_CASE("zb-auto: every schedule is valid, within its memory, and has the reported span",
          "[plan][schedule]") {
  for (const int stages : {1, 2, 3, 5, 8})
    for (const int microbatches : {1, 2, 3, 7, 16})
      for (const auto& memory : std::vector<std::vector<int>>{{}, {2}, {3}, {6}, {2 * stages}})
        for (const auto& setup :
             {equal_stages(1, 1, 1, 0, memory), equal_stages(3, 2, 5, 1, memory),
              equal_stages(0.25, 0, 0.5, 7, memory), equal_stages(0, 0, 0, 0, memory)}) {
          const ZeroBubblePlan plan = make(stages, microbatches, setup);
          CAPTURE(stages, microbatches, memory, setup.costs.of(0).forward.value);
          REQUIRE(error_of([&] { validate(plan.schedule); }) == "no error");
          REQUIRE(plan.schedule.microbatches == microbatches);
          REQUIRE(stage_count(plan.schedule) == stages);
          REQUIRE(Clock(plan.schedule, setup.costs).longest_span() == plan.longest_span.value);
          REQUIRE(plan.lower_bound <= plan.longest_span);
          if (!memory.empty())
            for (const auto& actions : plan.schedule.ranks)
              REQUIRE(peak_units(actions) <= memory[0]);
        }
}

TEST_CASE("zb-auto: each stage has its own memory limit", "[plan][schedule]") {
  const Setup setup{
      {.stages = {{{14}, {12}, {8}}, {{1}, {12}, {8}}, {{1}, {12}, {8}}}, .transfer = {1}},
      {8, 2, 5}};
  const ZeroBubblePlan plan = make(3, 6, setup);
  CHECK(error_of([&] { validate(plan.schedule); }) == "no error");
  CHECK(peak_units(plan.schedule.ranks[0]) <= 8);
  CHECK(peak_units(plan.schedule.ranks[1]) == 2);
  CHECK(peak_units(plan.schedule.ranks[2]) <= 5);
}

TEST_CASE("zb-auto: the same costs give the same schedule", "[plan][schedule]") {
  const Setup setup = equal_stages(5, 6, 4, 1, {4});
  CHECK(make(4, 6, setup).schedule == make(4, 6, setup).schedule);
}

TEST_CASE("zb-auto names the cost that cannot be used", "[plan][schedule]") {
  const auto error = [](const Setup& setup) { return error_of([&] { make(4, 8, setup); }); };
  const PassTimes one{{1}, {1}, {1}};
  CHECK(error({{.stages = {one, one, one}}}) ==
        "zb-auto: times of 3 stages given for 4; possible are one for all, or one of each");
  CHECK(error({{.stages = {one, one, {{1}, {-3}, {1}}, one}}}) ==
        "zb-auto: the time of I on stage 2 is -3; the least is 0, and it must be finite");
  CHECK(error(equal_stages(1, 1, std::numeric_limits<double>::quiet_NaN(), 0)) ==
        "zb-auto: the time of W is nan; the least is 0, and it must be finite");
  CHECK(error(equal_stages(1, 1, 1, never)) ==
        "zb-auto: the time of a transfer is inf; the least is 0, and it must be finite");
  CHECK(error(equal_stages(1, 1, 1, 0, {8, 8, 1, 8})) ==
        "zb-auto: a memory limit of 1 unit holds no microbatch; the least is 2");
  CHECK(error(equal_stages(1, 1, 1, 0, {8, 8})) ==
        "zb-auto: 2 memory limits given for 4 stages; possible are one for all, or one of each");
  CHECK(error_of([] { make(0, 8, equal_stages(1, 1, 1, 0)); }) ==
        "zb-auto: 0 ranks asked for, the least is 1");
}

}  // namespace zb_auto_test
