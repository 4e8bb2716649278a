#include <cmath>
#include <sstream>

#include "sim/support/equal_ranks.hpp"
#include "support/reference.hpp"

// Orders of other projects, replayed: every action ends when their own clocks say; and the tables
// of published bubble rates.

using namespace pipewright::plan;
using namespace pipewright::test;

namespace {

std::vector<double> list_of(const std::string& text) {
  std::vector<double> list;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '/');)
    list.push_back(std::stod(part));
  return list;
}

/// "f=1 b=1 w=1 c=0 m=4", where b is the input gradient.
ActionTimes times_of(const std::string& setup) {
  ActionTimes times;
  std::istringstream words(setup);
  for (std::string word; words >> word;) {
    const std::string value = word.substr(word.find('=') + 1);
    if (word.starts_with("f="))
      times.forward = list_of(value);
    if (word.starts_with("b="))
      times.input_gradient = list_of(value);
    if (word.starts_with("w="))
      times.weight_gradient = list_of(value);
    if (word.starts_with("c="))
      times.transfer = std::stod(value);
  }
  return times;
}

Schedule schedule_of(const std::vector<std::vector<std::string>>& ranks) {
  std::string csv;
  for (const auto& row : ranks)
    for (std::size_t i = 0; i < row.size(); ++i)
      csv += row[i] + (i + 1 == row.size() ? "\n" : ",");
  return parse_csv(csv, "reference");
}

/// The ends that the reference's own clock gives, by action.
std::map<std::string, std::map<std::string, double>> ends_by_configuration(
    const std::filesystem::path& file) {
  std::map<std::string, std::map<std::string, double>> ends;
  for_each_row(file, [&](const Row& row) {
    if (!row.at("action").empty() && !row.at("end").empty())
      ends[row.at("P") + "/" + row.at("M") + "/" + row.at("setup")][row.at("action")] =
          std::stod(row.at("end"));
  });
  return ends;
}

void replay(const std::string& name) {
  const auto file = reference_file("schedules/" + name);
  if (!file)
    return;
  const auto ends = ends_by_configuration(*file);
  std::size_t matching = 0;
  const auto references = read_reference_schedules(*file, {"setup"});
  for (const ReferenceSchedule& reference : references) {
    const std::string setup = reference.columns.at("setup");
    const auto& expected =
        ends.at(reference.columns.at("P") + "/" + reference.columns.at("M") + "/" + setup);
    const Timeline timeline = timed(schedule_of(reference.ranks), times_of(setup));
    std::size_t same = 0;
    for (const Span& span : timeline.spans)
      if (const auto end = expected.find(span.action); end != expected.end())
        same += std::abs(span.end.value - end->second) < 1e-6;
    INFO(name << ", P " << reference.columns.at("P") << ", M " << reference.columns.at("M") << ", "
              << setup);
    CHECK(same == expected.size());
    matching += same == expected.size();
  }
  report_matches(*file, matching, references.size());
}

/// (cost - ideal) / cost over the longest span of a rank, as in the zero-bubble papers.
double rate(const Schedule& schedule, const ActionTimes& times, int microbatches) {
  const double cost = longest_span(timed(schedule, times)).value;
  const double ideal =
      microbatches * (times.forward[0] + times.input_gradient[0] + times.weight_gradient[0]);
  return (cost - ideal) / cost;
}

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

}  // namespace

TEST_CASE("Every action of ZB ends when zero-bubble's clock says", "[sim][reference]") {
  replay("zerobubble_ZB.csv");
}
TEST_CASE("Every action of ZBV ends when zero-bubble's clock says", "[sim][reference]") {
  replay("zerobubble_ZBV.csv");
}
TEST_CASE("Every action of V-Half ends when zero-bubble's clock says", "[sim][reference]") {
  replay("zerobubble_V-Half.csv");
}
TEST_CASE("Every action of V-Min ends when zero-bubble's clock says", "[sim][reference]") {
  replay("zerobubble_V-Min.csv");
}
TEST_CASE("Every action of V-auto ends when zero-bubble's clock says", "[sim][reference]") {
  replay("zerobubble_V-auto.csv");
}

TEST_CASE("Zero Bubble, Table 5 from Table 9: 1F1B, ZB-H1 and ZB-H2 to the four printed decimals",
          "[sim][reference]") {
  const auto file = reference_file("papers/zb_table5_table9_bubble_rates.csv");
  if (!file)
    return;
  std::size_t matching = 0, all = 0;
  for_each_row(*file, [&](const Row& row) {
    const auto number = [&](const char* column) { return std::stod(row.at(column)); };
    const int p = std::stoi(row.at("p")), m = std::stoi(row.at("m"));
    const int v = std::stoi(row.at("v_interleaved"));
    const ActionTimes times{{number("T_F")}, {number("T_B")}, {number("T_W")}, number("T_comm")};
    INFO(row.at("model") << ", P " << p << ", M " << m);
    const auto expect = [&](double ours, const char* column) {
      CHECK(rounded(ours) == Approx(number(column)).margin(1e-9));
      matching += std::abs(rounded(ours) - number(column)) < 1e-9;
      ++all;
    };
    expect(rate(make("1f1b", p, m), times, m), "bubble_1F1B");
    expect(rate(make("zb-h1", p, m), times, m), "bubble_ZB_H1");
    expect(rate(make("zb-h2", p, m), times, m), "bubble_ZB_H2");
    // The authors charge P transfers less than Megatron's order pays (formulas.md, section 2).
    const double work = times.forward[0] + times.input_gradient[0] + times.weight_gradient[0];
    const double cost = (m + (p - 1.0) / v) * work + (2 * (p * v - 1) - p) * times.transfer;
    expect((cost - m * work) / cost, "bubble_1F1B_I");
    ScheduleRequest request;
    request.name = "zb-auto";
    request.ranks = p;
    request.microbatches = m;
    request.times = times;
    request.memory_units = 2 * p;
    CHECK(rounded(rate(make_schedule(request), times, m)) <= number("bubble_ZB_1p") + 1e-9);
    request.memory_units = 4 * p;
    CHECK(rounded(rate(make_schedule(request), times, m)) <= number("bubble_ZB_2p") + 1e-9);
  });
  report_matches(*file, matching, all);
}

// Its pass times are not printed: c/T and W/T follow from the columns 1F1B and ZB-H1, T = F + I +
// W.
TEST_CASE("Zero Bubble, Table 8: ZB-H2 and 1F1B-I follow from 1F1B and ZB-H1", "[sim][reference]") {
  const auto file = reference_file("papers/zb_table8_bubble_rates.csv");
  if (!file)
    return;
  std::size_t matching = 0, all = 0;
  for_each_row(*file, [&](const Row& row) {
    const auto over_ideal = [&](const char* column) {
      const double fraction = std::stod(row.at(column));
      return std::stod(row.at("m")) * fraction / (1 - fraction);
    };
    const double p = std::stod(row.at("p")), m = std::stod(row.at("m"));
    const double c = (over_ideal("bubble_1F1B") - (p - 1)) / (2 * (p - 1) * m / p + 2 * (p - 2));
    // (P - 1)(1 - 2w) + 4(P - 1)c
    const double w = (1 + 4 * c - over_ideal("bubble_ZB_H1") / (p - 1)) / 2;
    const double f = 0.4, i = 1 - w - f;
    const ActionTimes times{{f}, {i}, {w}, c};
    const double h2 =
        rate(make("zb-h2", static_cast<int>(p), static_cast<int>(m)), times, static_cast<int>(m));
    INFO("P " << p << ", M " << m << ", W/T " << w << ", c/T " << c);
    CHECK(h2 == Approx(std::stod(row.at("bubble_ZB_H2"))).margin(4e-4));
    const double cost = m + (p - 1) / 2 + (2 * (2 * p - 1) - p) * c;
    CHECK((cost - m) / cost == Approx(std::stod(row.at("bubble_1F1B_I"))).margin(4e-4));
    matching += std::abs(h2 - std::stod(row.at("bubble_ZB_H2"))) < 4e-4;
    ++all;
  });
  report_matches(*file, matching, all);
}

TEST_CASE("Makespan and memory of AMD Primus' schedule simulator, or better", "[sim][reference]") {
  const auto file = reference_file("planners/schedule_reference.csv");
  if (!file)
    return;
  const std::map<std::string, std::string> names{{"1F1B", "1f1b"},
                                                 {"ZB-1P", "zb-h1"},
                                                 {"interleaved-1F1B", "interleaved-1f1b"},
                                                 {"ZBV", "zbv"},
                                                 {"V-half", "v-half"},
                                                 {"V-min", "v-min"},
                                                 {"ZB-heuristic mem8", "zb-auto"}};
  std::size_t matching = 0, all = 0;
  for_each_row(*file, [&](const Row& row) {
    const auto name = names.find(row.at("schedule"));
    if (name == names.end() || row.at("comm") != "0")
      return;
    const int p = std::stoi(row.at("pp")), v = std::stoi(row.at("vpp"));
    ScheduleRequest request;
    request.name = name->second;
    request.ranks = p;
    request.microbatches = std::stoi(row.at("microbatches"));
    request.chunks = v;
    request.times = {{std::stod(row.at("F")) / v},
                     {std::stod(row.at("B")) / v},
                     {std::stod(row.at("W")) / v},
                     0};
    if (request.name == "zb-auto")
      request.memory_units = 16;
    const Schedule schedule = make_schedule(request);
    const double length = longest_span(timed(schedule, request.times)).value;
    const auto peaks = peak_memory_units(schedule);
    INFO(row.at("schedule"));
    // Its V-Min ends one forward of a chunk earlier than that of the authors, and ours.
    const double makespan =
        std::stod(row.at("makespan")) + (request.name == "v-min" ? request.times.forward[0] : 0);
    CHECK(length <= makespan);
    CHECK(0.5 * *std::max_element(peaks.begin(), peaks.end()) / v <=
          std::stod(row.at("peak_activation_units")));
    matching += length <= makespan;
    ++all;
  });
  report_matches(*file, matching, all);
}
