#include "pipewright/draw/svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "draw/support/svg_elements.hpp"
#include "pipewright/draw/timeline.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "support/catch.hpp"

namespace svg_test {

using namespace pipewright::draw;
using namespace pipewright::plan;

Timeline of_spans(const char* name, double length, std::vector<Span> spans) {
  return {.name = name, .ranks = 1, .length = {length}, .spans = std::move(spans), .memory = {}};
}

Timeline predicted() {
  Timeline timeline = of_spans("predicted", 8,
                               {{0, Row::Compute, "0F0", {1}, {3}},
                                {0, Row::Compute, "0B0", {3}, {7}},
                                {0, Row::Compute, "0STEP", {7}, {8}}});
  timeline.memory = {{0, {0}, {1'000'000'000}}, {0, {1}, {1'500'000'000}}};
  return timeline;
}

/// Returns a timeline with the same first forward in a longer iteration.
Timeline measured() {
  Timeline timeline = of_spans(
      "measured", 10, {{0, Row::Compute, "0F0", {1}, {3}}, {0, Row::Compute, "0B0", {5}, {9}}});
  timeline.memory = {{0, {0}, {1'000'000'000}}, {0, {1}, {2'000'000'000}}};
  return timeline;
}

std::string to_svg_of(std::vector<Timeline> timelines) {
  return to_svg(timeline_scene(timelines, "A step"));
}

struct Extent {
  double left = 0;
  double width = 0;
};

/// Returns where the first box of each path of this class begins, and its width.
std::vector<Extent> extents(const std::string& svg, const std::string& name) {
  std::vector<Extent> found;
  for (const std::string& path : paths(svg, name)) {
    const std::string data = attribute(path, "d");
    found.push_back({std::stod(all_between(data, "M", " ").at(0)),
                     std::stod(all_between(data, "h", "v").at(0))});
  }
  return found;
}

/// Returns a timeline of two ranks. Rank 0 does everything one second before rank 1 does. Rank 1 is
/// idle from 0 to 2 s.
Timeline explained() {
  return {.name = "explained",
          .ranks = 2,
          .length = {10},
          .spans = {{0, Row::Compute, "0F0", {0}, {1}},
                    {0, Row::Send, "0SEND_F0", {1}, {2}},
                    {1, Row::Receive, "1RECV_F0", {0.5}, {2}},
                    {1, Row::Compute, "1F0", {2}, {4}},
                    {1, Row::Reduce, "1REDUCE_GRAD", {4}, {6}}},
          .memory = {{0, {0}, {1'000'000'000}}, {1, {0}, {500'000'000}}},
          .idle = {{1, IdleCause::WarmUp, {0}, {1}},
                   {1, IdleCause::Transfer, {1}, {2}},
                   {0, IdleCause::CoolDown, {1}, {10}},
                   {1, IdleCause::CoolDown, {5}, {10}}},
          .critical = {0, 1, 2, 3, 4}};
}

/// Returns the top and the bottom of the rank's row of bars, from the background of the row.
std::pair<double, double> row_of(const std::string& svg, int rank) {
  const auto ground = corners(paths(svg, "idle").at(0));
  return {ground.at(static_cast<std::size_t>(4 * rank)).second,
          ground.at(static_cast<std::size_t>(4 * rank + 2)).second};
}

/// Returns the x of a time in the figure of `explained`, whose first forward takes one second.
double x_of(const std::string& svg, double seconds) {
  const Extent second = extents(svg, "F").at(0);
  return second.left + seconds * second.width;
}

/// Returns a pipeline of many ranks with everything that a figure can show.
Timeline crowded(int ranks, int microbatches) {
  Timeline timeline{.name = "crowded",
                    .ranks = ranks,
                    .length = {1.0 * ranks + microbatches},
                    .spans = {},
                    .memory = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string stage = std::to_string(rank);
    for (int m = 0; m < microbatches; ++m) {
      const double start = rank + m;
      const std::string number = std::to_string(m);
      timeline.critical.push_back(timeline.spans.size());
      timeline.spans.push_back({rank, Row::Compute, stage + "F" + number, {start}, {start + 0.5}});
      timeline.spans.push_back(
          {rank, Row::Compute, stage + "I" + number, {start + .5}, {start + .7}});
      timeline.spans.push_back({rank, Row::Send, stage + "SEND_F" + number, {start}, {start + 1}});
      timeline.idle.push_back(
          {rank, static_cast<IdleCause>((rank + m) % 6), {start + 0.7}, {start + 1}});
      timeline.memory.push_back({rank, {start}, {1'000'000 * m}});
    }
    timeline.spans.push_back({rank, Row::Reduce, stage + "REDUCE_GRAD", {0}, timeline.length});
  }
  return timeline;
}

/// How an eye sees a color: a matrix on linear RGB, from Machado et al. (2009), severity 1.
using Eye = std::array<std::array<double, 3>, 3>;
constexpr std::array<Eye, 4> eyes{{
    {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
    {{{0.152286, 1.052583, -0.204868},
      {0.114503, 0.786281, 0.099216},
      {-0.003882, -0.048116, 1.051998}}},
    {{{0.367322, 0.860646, -0.227968},
      {0.280085, 0.672501, 0.047413},
      {-0.011820, 0.042940, 0.968881}}},
    {{{1.255528, -0.076749, -0.178779},
      {-0.078411, 0.930809, 0.147602},
      {0.004733, 0.691367, 0.303900}}},
}};

std::array<double, 3> times(const Eye& matrix, const std::array<double, 3>& v) {
  std::array<double, 3> product{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      product[i] += matrix[i][j] * v[j];
  return product;
}

/// Returns CIE L*a*b* of "#rrggbb" as this eye sees it, in which distances are perceived
/// differences.
std::array<double, 3> seen(const std::string& color, const Eye& eye) {
  std::array<double, 3> linear{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double c = std::stoi(color.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    linear[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  linear = times(eye, linear);
  for (double& c : linear)
    c = std::clamp(c, 0.0, 1.0);
  constexpr Eye to_xyz{{{0.4339, 0.3762, 0.1899},  // relative to daylight white
                        {0.2126, 0.7152, 0.0722},
                        {0.0178, 0.1095, 0.8727}}};
  auto xyz = times(to_xyz, linear);
  for (double& c : xyz)
    c = c > 0.008856 ? std::cbrt(c) : 7.787 * c + 16.0 / 116;
  return {116 * xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])};
}

double distance(const std::array<double, 3>& a, const std::array<double, 3>& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

TEST_CASE("SVG: every opening tag is closed", "[draw][svg]") {
  CHECK(xml_fault("<a><b c=\"d\"/></a>\n") == "");
  CHECK(xml_fault("<a><b></a></b>") != "");
  CHECK(xml_fault("<a>1 < 2</a>") != "");
  CHECK(xml_fault("<a>2 > 1</a>") != "");
  CHECK(xml_fault(to_svg_of({predicted(), measured()})) == "");
}

TEST_CASE("SVG: an empty figure is valid", "[draw][svg]") {
  CHECK(xml_fault(to_svg(timeline_scene({}, ""))) == "");
  const std::string svg = to_svg_of({of_spans("empty", 0, {})});
  CHECK(xml_fault(svg) == "");
  CHECK(svg.find("nan") == std::string::npos);
}

TEST_CASE("SVG: the same time has the same position in every timeline", "[draw][svg]") {
  const auto forwards = extents(to_svg_of({predicted(), measured()}), "F");
  REQUIRE(forwards.size() == 2);
  CHECK(forwards[0].left == forwards[1].left);
  CHECK(forwards[0].width == forwards[1].width);
}

TEST_CASE("SVG: the longest timeline fills the axis, a shorter one ends before", "[draw][svg]") {
  const auto idle = extents(to_svg_of({predicted(), measured()}), "idle");
  REQUIRE(idle.size() == 2);
  CHECK(idle[0].left == idle[1].left);
  CHECK(idle[0].width / idle[1].width == Approx(8.0 / 10));
}

TEST_CASE("SVG: bars are as long as their spans", "[draw][svg]") {
  const std::string svg = to_svg_of({predicted()});
  CHECK(extents(svg, "B").at(0).width == Approx(2 * extents(svg, "F").at(0).width));
  CHECK(extents(svg, "STEP").at(0).width == Approx(extents(svg, "F").at(0).width / 2));
}

/// Returns the height and the top of the first box of the only path of this class.
std::pair<double, double> height_and_top(const std::string& svg, const std::string& name) {
  const std::string data = attribute(paths(svg, name).at(0), "d");
  const std::string corner = all_between(data, "M", "h").at(0);
  return {std::stod(all_between(data, "v", "h").at(0)),
          std::stod(corner.substr(corner.find_first_of(" ,") + 1))};
}

TEST_CASE("SVG: two concurrent actions share the row, the earlier one above", "[draw][svg]") {
  const auto svg_of = [](double begin, double end) {
    return to_svg_of(
        {of_spans("measured", 10,
                  {{0, Row::Compute, "0F1", {1}, {5}}, {0, Row::Compute, "1B0", {begin}, {end}}})});
  };
  const auto [whole, top] = height_and_top(svg_of(5, 9), "F");
  CHECK(height_and_top(svg_of(5, 9), "B") == std::pair{whole, top});
  for (const auto& [begin, end] : {std::pair{2, 4}, {1, 9}, {2, 6}}) {
    const std::string svg = svg_of(begin, end);
    CHECK(height_and_top(svg, "F") == std::pair{whole / 2, top});
    CHECK(height_and_top(svg, "B") == std::pair{whole / 2, top + whole / 2});
  }
  // Within the error of clocks.
  CHECK(height_and_top(svg_of(4.5, 9), "F") == std::pair{whole, top});
  CHECK(height_and_top(svg_of(0, 3), "B") == std::pair{whole / 2, top});
}

TEST_CASE("SVG: titles and names may contain the special characters of XML", "[draw][svg]") {
  const std::string svg =
      to_svg(timeline_scene({of_spans("\"a\" & <b>\n", 1, {})}, "P<4 & M>\"8\""));
  CHECK(xml_fault(svg) == "");
  CHECK(all_between(svg, "<title>", "</title>").at(0) == "P&lt;4 &amp; M&gt;&quot;8&quot;");
  CHECK(count_text(svg, "P&lt;4 &amp; M&gt;&quot;8&quot;") == 1);
  CHECK(count_text(svg, "&quot;a&quot; &amp; &lt;b&gt; ") == 1);
}

TEST_CASE("SVG: transfers draw no bars", "[draw][svg]") {
  const auto svg = to_svg_of({of_spans("t", 1, {{0, Row::Send, "0SEND_F0", {0}, {1}}})});
  CHECK(paths(svg, "other").empty());
  CHECK(paths(svg, "idle").size() == 1);
}

TEST_CASE("SVG: the figures of each rank are next to its row", "[draw][svg]") {
  const std::string svg = to_svg_of({predicted()});
  for (const char* text : {"87.5 %", "12.5 %", "iteration 8.00 s, mean bubble 12.5 %"})
    CHECK(count_text(svg, text) == 1);
  CHECK(count_text(svg, "rank 0") == 2);   // at its bars and at its memory
  CHECK(count_text(svg, "1.50 GB") == 2);  // its peak, and the top of the memory axis
}

TEST_CASE("SVG: memory has one scale, named after the largest of all timelines", "[draw][svg]") {
  const std::string svg = to_svg_of({predicted(), measured()});
  CHECK(count_text(svg, "2.00 GB") == 3);  // at both axes, and as the measured peak
  const auto areas = paths(svg, "memory");
  REQUIRE(areas.size() == 2);
  for (const std::string& area : areas) {
    // Both start with 1 GB, which is half of a strip of height 26.
    const std::string data = attribute(area, "d");
    const double base = std::stod(all_between(data, "M76 ", "H").at(0));
    CHECK(base - std::stod(all_between(data, "V", "H").at(0)) == Approx(13));
  }
}

TEST_CASE("SVG: wide bars show their microbatch, narrow bars show nothing", "[draw][svg]") {
  const std::vector<Span> spans{{0, Row::Compute, "0F77", {0}, {5}}};
  CHECK(count_text(to_svg_of({of_spans("t", 10, spans)}), "77") == 1);
  CHECK(count_text(to_svg_of({of_spans("t", 10'000, spans)}), "77") == 0);
}

TEST_CASE("SVG: ten thousand narrow bars are one path", "[draw][svg]") {
  std::vector<Span> spans;
  for (int m = 0; m < 10'000; ++m)
    spans.push_back({0, Row::Compute, "0F" + std::to_string(m), {1.0 * m}, {m + 0.5}});
  const std::string svg = to_svg_of({of_spans("t", 10'000, spans)});
  CHECK(paths(svg, "F").size() == 1);
  CHECK(std::count(svg.begin(), svg.end(), '<') < 100);
}

TEST_CASE("SVG: the axis has round ticks in a suitable unit", "[draw][svg]") {
  const std::string in_ms = to_svg_of({of_spans("t", 0.0123, {})});
  for (const char* text : {"0", "2", "10", "12", "time in ms"})
    CHECK(count_text(in_ms, text) == 1);
  const std::string in_s = to_svg_of({of_spans("t", 2.2, {})});
  for (const char* text : {"0.0", "0.2", "2.2", "time in s"})
    CHECK(count_text(in_s, text) == 1);
}

TEST_CASE("SVG: a rank's later stages are lighter than its first", "[draw][svg]") {
  const std::string svg = to_svg_of(
      {of_spans("t", 2, {{0, Row::Compute, "0F0", {0}, {1}}, {0, Row::Compute, "2F0", {1}, {2}}})});
  const auto forwards = paths(svg, "F");
  REQUIRE(forwards.size() == 2);
  CHECK(attribute(forwards[0], "fill-opacity") == "1");
  CHECK(attribute(forwards[1], "fill-opacity") == "0.55");
  CHECK(count_text(svg, "lighter: later stages of the same rank") == 1);
}

TEST_CASE("SVG: idle time has the color of its cause, from its start to its end", "[draw][svg]") {
  const std::string svg = to_svg_of({explained()});
  const double second = extents(svg, "F").at(0).width;
  const auto warm_up = extents(svg, "warm-up");
  const auto transfer = extents(svg, "transfer");
  REQUIRE(warm_up.size() == 1);
  REQUIRE(transfer.size() == 1);
  CHECK(warm_up[0].left == Approx(x_of(svg, 0)));
  CHECK(warm_up[0].width == Approx(second));
  CHECK(transfer[0].left == Approx(x_of(svg, 1)));
  CHECK(corners(paths(svg, "warm-up").at(0)).at(0).second == row_of(svg, 1).first);
  CHECK(paths(svg, "queue").empty());
}

TEST_CASE("SVG: a bar ends where its rank waits for a late tensor-parallel rank", "[draw][svg]") {
  Timeline timeline = of_spans("t", 8, {{0, Row::Compute, "0F0", {0}, {4}, {3}, {1}}});
  timeline.idle = {{0, IdleCause::Shards, {3}, {4}}};
  const std::string svg = to_svg_of({timeline});
  const auto bar = extents(svg, "F"), wait = extents(svg, "shards"),
             foot = extents(svg, "passing on");
  REQUIRE(bar.size() == 1);
  REQUIRE(wait.size() == 1);
  REQUIRE(foot.size() == 1);
  CHECK(wait[0].width == Approx(bar[0].width / 3));
  CHECK(bar[0].left + bar[0].width == Approx(wait[0].left));
  CHECK(foot[0].width == Approx(2 * bar[0].width / 3));
  CHECK(foot[0].left + foot[0].width == Approx(wait[0].left));
}

TEST_CASE("SVG: the legend shows each cause's share of the idle time", "[draw][svg]") {
  const std::string svg = to_svg_of({explained()});
  CHECK(count_text(svg, "warm-up 6.2 %") == 1);     // 1 of 16 seconds
  CHECK(count_text(svg, "cool-down 87.5 %") == 1);  // 14
  CHECK(svg.find("imbalance") == std::string::npos);
  CHECK(count_text(svg, "idle") == 0);
}

TEST_CASE("SVG: idle time without causes has the plain color", "[draw][svg]") {
  const std::string svg = to_svg_of({predicted()});
  CHECK(count_text(svg, "idle") == 1);
  CHECK(count_text(svg, "idle time by cause:") == 0);
  CHECK(count_text(svg, "critical path") == 0);
  CHECK(paths(svg, "critical").empty());
  // With another timeline that has causes, the plain color needs its legend key again.
  CHECK(count_text(to_svg_of({predicted(), explained()}), "idle") == 1);
}

TEST_CASE("SVG: all causes can be told apart with any kind of color blindness", "[draw][svg]") {
  Timeline timeline = of_spans("t", 8, {});
  for (int cause = 0; cause < 8; ++cause)
    timeline.idle.push_back({0, static_cast<IdleCause>(cause), {1.0 * cause}, {cause + 1.0}});
  const std::string svg = to_svg_of({timeline});
  for (const Eye& eye : eyes)
    for (const std::string& a : idle_causes())
      for (const std::string& b : idle_causes())
        if (a < b) {
          INFO(a << " and " << b);
          CHECK(distance(seen(attribute(paths(svg, a).at(0), "fill"), eye),
                         seen(attribute(paths(svg, b).at(0), "fill"), eye)) > 12);
        }
}

TEST_CASE("SVG: the critical path runs below its bars and crosses ranks at the transfer",
          "[draw][svg]") {
  const std::string svg = to_svg_of({explained()});
  const auto path = paths(svg, "critical");
  REQUIRE(path.size() == 1);
  const auto points = corners(path[0]);
  REQUIRE(points.size() == 4);
  const auto [top, bottom] = row_of(svg, 0);
  const auto [next_top, next_bottom] = row_of(svg, 1);
  const std::array<double, 4> times{0, 1, 2, 6};  // the forward, the transfer, all on rank 1
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(points[i].first == Approx(x_of(svg, times[i])).margin(0.02));
  CHECK(points[0].second == points[1].second);
  CHECK(points[2].second == points[3].second);
  CHECK((top + bottom) / 2 < points[0].second);
  CHECK(points[0].second < bottom);
  CHECK((next_top + next_bottom) / 2 < points[2].second);
  CHECK(points[2].second < next_bottom);
  CHECK(count_text(svg, "critical path") == 1);
}

TEST_CASE("SVG: sends and reductions are drawn between two rows of bars", "[draw][svg]") {
  const std::string svg = to_svg_of({explained()});
  const auto send = corners(paths(svg, "send").at(0));
  const auto reduce = corners(paths(svg, "reduce").at(0));
  CHECK(send[0].first == Approx(x_of(svg, 1)));
  CHECK(send[1].first == Approx(x_of(svg, 2)));
  CHECK(reduce[0].first == Approx(x_of(svg, 4)));
  CHECK(send[0].second > row_of(svg, 0).second);
  CHECK(send[2].second < row_of(svg, 1).first);
  CHECK(reduce[0].second > row_of(svg, 1).second);
  CHECK(count_text(svg, "send") == 1);
  CHECK(count_text(svg, "reduction") == 1);
}

TEST_CASE("SVG: rows without transfers leave no space for them", "[draw][svg]") {
  Timeline timeline = explained();
  std::erase_if(timeline.spans, [](const Span& span) { return span.row != Row::Compute; });
  timeline.critical.clear();
  const std::string svg = to_svg_of({timeline});
  CHECK(row_of(svg, 1).first - row_of(svg, 0).second == Approx(5));
}

TEST_CASE("SVG: from 1 to 64 ranks all text is on the page and does not overlap", "[draw][svg]") {
  for (const int ranks : {1, 2, 4, 5, 8, 9, 16, 32, 33, 64}) {
    INFO(ranks << " ranks");
    const std::string svg = to_svg_of({crowded(ranks, 4), crowded(ranks, 4)});
    CHECK(xml_fault(svg) == "");
    CHECK(text_fault(svg) == "");
  }
}

TEST_CASE("SVG: names longer than the page are cut between two letters", "[draw][svg]") {
  std::string name;
  for (int i = 0; i < 300; ++i)
    name += "µ";
  const std::string svg = to_svg(timeline_scene({of_spans(name.c_str(), 1, {})}, name));
  int names = 0;
  for (const std::string& element : all_between(svg, "<text", "</text>")) {
    const std::string text = element.substr(element.find('>') + 1);
    if (text.find("µ") == std::string::npos)
      continue;
    ++names;
    CHECK(text.size() < 200);
    CHECK(text.size() % 2 == 1);  // letters of two bytes and an ellipsis of three
    CHECK(text.substr(text.size() - 3) == "…");
  }
  CHECK(names == 2);  // the title and the timeline
}

TEST_CASE("SVG: more spans make longer paths, not more paths", "[draw][svg]") {
  const auto elements = [](int microbatches) {
    const std::string svg = to_svg_of({crowded(64, microbatches)});
    return all_between(svg, "<path", ">").size();
  };
  CHECK(elements(200) == elements(100));
}

TEST_CASE("Scene: each bar is a box with a tooltip", "[draw][svg]") {
  const Scene scene = timeline_scene({predicted()}, "A step");
  std::vector<std::string> tooltips;
  for (const Element& element : scene.elements)
    if (const auto* boxes = std::get_if<Boxes>(&element))
      for (const Box& box : boxes->boxes)
        if (!box.tooltip.empty())
          tooltips.push_back(box.tooltip);
  CHECK(tooltips == std::vector<std::string>{"0F0 on rank 0: 2.00 s from 1.00 s on",
                                             "0B0 on rank 0: 4.00 s from 3.00 s on",
                                             "0STEP on rank 0: 1.00 s from 7.00 s on"});
}

}  // namespace svg_test
