#include "pipewright/draw/chart.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "draw/support/svg_elements.hpp"
#include "pipewright/draw/svg.hpp"
#include "pipewright/plan/error.hpp"
#include "support/catch.hpp"

namespace chart_test {

using namespace pipewright::draw;
using pipewright::plan::InputError;

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

using Points = std::vector<std::pair<double, double>>;

std::string svg_of(const Chart& chart) { return to_svg(chart_scene(chart)); }

Chart chart_of(std::vector<ChartLine> lines, bool log_x = false) {
  return {.title = "Iteration time",
          .x_label = "microbatches",
          .y_label = "time in ms",
          .log_x = log_x,
          .lines = std::move(lines)};
}

Chart of_schedules(std::vector<std::string> names, const Points& points) {
  Chart chart = chart_of({{"4 ranks", points}});
  chart.categories = std::move(names);
  return chart;
}

/// Returns the corners of each piece of a line.
std::vector<Points> pieces(const std::string& svg, std::size_t line = 0) {
  std::vector<Points> found;
  const std::string path = paths(svg, "line").at(line);
  for (const std::string& piece : all_between(attribute(path, "d"), "M", "M"))
    found.push_back(corners(" d=\"M" + piece + "\""));
  return found;
}

/// Returns the center of each marker of a line.
Points markers(const std::string& svg, std::size_t line = 0) {
  Points found;
  const std::string data = attribute(paths(svg, "points").at(line), "d");
  for (const std::string& marker : all_between(data, "M", "z")) {
    const auto shape = corners(" d=\"M" + marker + "\"");
    const auto [left, right] = std::minmax_element(shape.begin(), shape.end());
    found.emplace_back((left->first + right->first) / 2, 0);
  }
  return found;
}

/// Returns the center of a text that occurs once in the figure.
std::pair<double, double> place_of(const std::string& svg, const std::string& text) {
  Points found;
  for (const Text& one : level_texts(svg))
    if (one.text == text)
      found.emplace_back((one.left + one.right) / 2, (one.top + one.bottom) / 2);
  REQUIRE(found.size() == 1);
  return found[0];
}

std::string error_of(const Chart& chart) {
  try {
    svg_of(chart);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("Chart: points are at the positions that the ticks of both axes give", "[draw][chart]") {
  const std::string svg = svg_of(chart_of({{"1f1b", {{2, 10}, {4, 40}, {8, 20}}}}));
  const auto line = pieces(svg);
  REQUIRE(line.size() == 1);
  REQUIRE(line[0].size() == 3);
  const std::vector<std::string> x_ticks{"2", "4", "8"};
  const std::vector<std::string> y_ticks{"10", "40", "20"};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(line[0][i].first == Approx(place_of(svg, x_ticks[i]).first).margin(0.1));
    CHECK(line[0][i].second == Approx(place_of(svg, y_ticks[i]).second).margin(0.5));
    CHECK(markers(svg).at(i).first == Approx(line[0][i].first).margin(0.1));
  }
}

TEST_CASE("Chart: a logarithmic axis spaces equal factors equally", "[draw][chart]") {
  const auto svg = svg_of(chart_of({{"1f1b", {{1, 5}, {2, 6}, {4, 7}, {32, 8}}}}, true));
  const auto line = pieces(svg).at(0);
  const double factor_two = line[1].first - line[0].first;
  CHECK(line[2].first - line[1].first == Approx(factor_two).margin(0.02));
  CHECK(line[3].first - line[2].first == Approx(3 * factor_two).margin(0.02));
  for (const char* power : {"1", "2", "4", "8", "16", "32"})
    CHECK(std::abs(place_of(svg, power).first - line[0].first -
                   factor_two * std::log2(std::stod(power))) < 0.5);
}

TEST_CASE("Chart: a logarithmic axis without powers of two has ticks at 1, 2 and 5",
          "[draw][chart]") {
  const auto svg = svg_of(chart_of({{"1f1b", {{3, 0.1}, {600, 0.2}}}}, true));
  for (const char* text : {"5", "10", "20", "50", "100", "200", "500"})
    CHECK(count_text(svg, text) == 1);
  CHECK(count_text(svg, "2") + count_text(svg, "1000") == 0);
}

TEST_CASE("Chart: the value axis begins at zero, unless all values are far from it",
          "[draw][chart]") {
  const auto near = svg_of(chart_of({{"a", {{1, 3}, {2, 9}}}}));
  CHECK(count_text(near, "0") == 1);
  const auto far = svg_of(chart_of({{"a", {{1, 101}, {2, 109}}}}));
  CHECK(count_text(far, "0") == 0);
  for (const char* text : {"100", "102", "110"})
    CHECK(count_text(far, text) == 1);
}

TEST_CASE("Chart: large values are written in millions", "[draw][chart]") {
  const auto svg = svg_of(chart_of({{"a", {{1, 0}, {2, 1e7}}}}));
  for (const char* text : {"0", "2M", "8M", "10M"})
    CHECK(count_text(svg, text) == 1);
}

TEST_CASE("Chart: a combination that is not possible leaves a gap", "[draw][chart]") {
  const ChartLine whole{"gpipe", {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}}};
  const Points without_three{{1, 1}, {2, 2}, {4, 4}, {5, 5}};
  const Points not_a_number{{1, 1}, {2, 2}, {3, no_value}, {4, 4}, {5, 5}};
  for (const Points& points : {without_three, not_a_number}) {
    const auto svg = svg_of(chart_of({{"zb-v", points}, whole}));
    CHECK(pieces(svg, 0).size() == 2);
    CHECK(markers(svg, 0).size() == 4);
    CHECK(pieces(svg, 1).size() == 1);
    CHECK(markers(svg, 1).size() == 5);
  }
}

TEST_CASE("Chart: a point between two gaps is still marked", "[draw][chart]") {
  const auto svg = svg_of(chart_of({{"a", {{1, no_value}, {2, 2}, {3, no_value}, {4, 3}}}}));
  CHECK(markers(svg).size() == 2);
}

TEST_CASE("Chart: points in any order make the same line", "[draw][chart]") {
  CHECK(svg_of(chart_of({{"a", {{4, 1}, {1, 5}, {2, 2}}}})) ==
        svg_of(chart_of({{"a", {{1, 5}, {2, 2}, {4, 1}}}})));
}

TEST_CASE("Chart: categories are equally spaced below their points", "[draw][chart]") {
  const auto svg = svg_of(of_schedules({"gpipe", "1f1b", "zb-v"}, {{0, 3}, {1, 2}, {2, 1}}));
  const auto line = pieces(svg).at(0);
  CHECK(line[1].first - line[0].first == Approx(line[2].first - line[1].first).margin(0.02));
  CHECK(place_of(svg, "gpipe").first == Approx(line[0].first).margin(0.1));
  CHECK(place_of(svg, "zb-v").first == Approx(line[2].first).margin(0.1));
}

TEST_CASE("Chart: names too wide to fit next to each other are slanted and stay on the page",
          "[draw][chart]") {
  std::vector<std::string> names;
  Points points;
  for (int i = 0; i < 16; ++i) {
    // All digits have the same width.
    names.push_back(std::to_string(1'000'000'000'000'000'000 + i));
    points.emplace_back(i, 1 + i);
  }
  const auto svg = svg_of(of_schedules(names, points));
  const double height = std::stod(attribute(svg, "height"));
  int slanted = 0;
  double lowest = 0;
  for (const std::string& element : all_between(svg, "<text", "</text>")) {
    if (element.find("rotate(-35 ") == std::string::npos)
      continue;
    ++slanted;
    const double length = 0.556 * 11 * 19;
    CHECK(std::stod(attribute(element, "x")) - length * std::cos(0.61) > 0);
    lowest = std::max(lowest, std::stod(attribute(element, "y")) + length * std::sin(0.61));
  }
  CHECK(slanted == 16);
  const double label = place_of(svg, "microbatches").second;
  CHECK(lowest < label);
  CHECK(label < height - 5);
}

TEST_CASE("Chart: every line has a legend key and a unique look", "[draw][chart]") {
  std::vector<ChartLine> lines;
  for (int i = 0; i < 14; ++i)
    lines.push_back({"schedule " + std::to_string(i), {{1, 1.0 + i}, {2, 2.0 + i}}});
  const auto svg = svg_of(chart_of(lines));
  std::set<std::string> looks;
  for (const std::string& path : paths(svg, "line"))
    looks.insert(path.substr(0, path.find(" d=")));
  CHECK(looks.size() == 14);
  for (const ChartLine& line : lines)
    CHECK(count_text(svg, line.name) == 1);
  CHECK(text_fault(svg) == "");
}

TEST_CASE("Chart: text stays on the page and does not overlap other text", "[draw][chart]") {
  for (const double factor : {1e-9, 1e-3, 1.0, 1e5, 1e12}) {
    Points points;
    for (int i = 0; i <= 10; ++i)
      points.emplace_back(std::pow(2, i), factor * (i + 3));
    for (const bool logarithmic : {false, true}) {
      INFO(factor << (logarithmic ? ", logarithmic" : ""));
      CHECK(text_fault(svg_of(chart_of({{"a", points}}, logarithmic))) == "");
    }
  }
  const std::string long_text(400, '0');
  CHECK(text_fault(svg_of({.title = long_text,
                           .x_label = long_text,
                           .y_label = long_text,
                           .lines = {{long_text, {{1, 1}}}, {long_text, {{1, 2}}}}})) == "");
}

TEST_CASE("Chart: no points, one point or equal values still make a chart", "[draw][chart]") {
  for (const bool logarithmic : {false, true})
    for (const Points& points :
         {Points{}, Points{{1, no_value}}, Points{{4, 0}}, Points{{4, 7}}, Points{{4, -7}},
          Points{{1, 5}, {2, 5}}, Points{{1, -5}, {2, -1}}, Points{{1, -1}, {2, 1}}}) {
      const auto svg = svg_of(chart_of({{"a", points}}, logarithmic));
      CHECK(xml_fault(svg) == "");
      CHECK(svg.find("nan") == std::string::npos);
      CHECK(svg.find("inf") == std::string::npos);
    }
  CHECK(xml_fault(svg_of(Chart{})) == "");
}

TEST_CASE("Chart: names may contain the special characters of XML", "[draw][chart]") {
  Chart chart = of_schedules({"<a>", "b & c"}, {{0, 1}, {1, 2}});
  chart.title = chart.x_label = chart.y_label = chart.lines[0].name = "\"<&>";
  CHECK(xml_fault(svg_of(chart)) == "");
}

TEST_CASE("Chart: an x without a position is rejected", "[draw][chart]") {
  CHECK(error_of(chart_of({{"a", {{no_value, 1}}}})).find("x is not a number") !=
        std::string::npos);
  CHECK(error_of(chart_of({{"a", {{0, 1}}}}, true)).find("logarithmic") != std::string::npos);
  for (const double x : {-1.0, 0.5, 2.0})
    CHECK(error_of(of_schedules({"a", "b"}, {{x, 1}})).find("2 categories") != std::string::npos);
}

}  // namespace chart_test
