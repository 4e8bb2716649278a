#include <algorithm>
#include <string>
#include <vector>

#include "pipewright/plan/timeline.hpp"
#include "support/catch.hpp"

using namespace pipewright::plan;

namespace {

Timeline of_spans(const char* name, double length, std::vector<Span> spans) {
  return {.name = name, .ranks = 1, .length = {length}, .spans = std::move(spans), .memory = {}};
}

Timeline predicted() {
  Timeline timeline = of_spans("predicted", 8,
                               {{0, Lane::Compute, "0F0", {1}, {3}},
                                {0, Lane::Compute, "0B0", {3}, {7}},
                                {0, Lane::Compute, "0STEP", {7}, {8}}});
  timeline.memory = {{0, {0}, {1'000'000'000}}, {0, {1}, {1'500'000'000}}};
  return timeline;
}

/// The same first forward in a longer iteration.
Timeline measured() {
  Timeline timeline = of_spans(
      "measured", 10, {{0, Lane::Compute, "0F0", {1}, {3}}, {0, Lane::Compute, "0B0", {5}, {9}}});
  timeline.memory = {{0, {0}, {1'000'000'000}}, {0, {1}, {2'000'000'000}}};
  return timeline;
}

std::string to_svg_of(std::vector<Timeline> timelines) { return to_svg(timelines, "A step"); }

/// Empty when every tag that opens also closes, in order, and no bracket stands outside a tag.
std::string xml_fault(const std::string& text) {
  std::vector<std::string> open;
  std::size_t end = std::string::npos;  // of the last tag
  for (std::size_t begin = text.find('<'); begin != std::string::npos;
       begin = text.find('<', end)) {
    if (end != std::string::npos && text.find('>', end + 1) < begin)
      return "stray > before " + text.substr(begin, 40);
    end = text.find('>', begin);
    const std::string tag = text.substr(begin + 1, end - begin - 1);
    if (end == std::string::npos || tag.find('<') != std::string::npos)
      return "stray < before " + tag.substr(0, 40);
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0)
      return "an attribute without its end: " + tag;
    if (tag.front() == '?' || tag.back() == '/')
      continue;
    if (tag.front() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
      continue;
    }
    if (open.empty() || open.back() != tag.substr(1))
      return "unexpected " + tag;
    open.pop_back();
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

/// What stands between `begin` and `end`, as often as it occurs.
std::vector<std::string> all_between(const std::string& text, const std::string& begin,
                                     const std::string& end) {
  std::vector<std::string> found;
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    at += begin.size();
    found.push_back(text.substr(at, text.find(end, at) - at));
  }
  return found;
}

/// Each path of this class, without its brackets.
std::vector<std::string> paths(const std::string& svg, const std::string& name) {
  return all_between(svg, "<path class=\"" + name + "\"", "/>");
}

std::string attribute(const std::string& tag, const std::string& name) {
  return all_between(tag, " " + name + "=\"", "\"").at(0);
}

/// How many times exactly this text is written in the figure.
int count_text(const std::string& svg, const std::string& text) {
  int count = 0;
  for (const std::string& element : all_between(svg, "<text", "</text>"))
    count += element.substr(element.find('>') + 1) == text ? 1 : 0;
  return count;
}

struct Extent {
  double left = 0;
  double width = 0;
};

/// Where the first box of each path of this class begins, and how wide it is.
std::vector<Extent> extents(const std::string& svg, const std::string& name) {
  std::vector<Extent> found;
  for (const std::string& path : paths(svg, name)) {
    const std::string data = attribute(path, "d");
    found.push_back({std::stod(all_between(data, "M", " ").at(0)),
                     std::stod(all_between(data, "h", "v").at(0))});
  }
  return found;
}

}  // namespace

TEST_CASE("SVG: every tag that opens closes again", "[plan][svg]") {
  CHECK(xml_fault("<a><b c=\"d\"/></a>\n") == "");
  CHECK(xml_fault("<a><b></a></b>") != "");
  CHECK(xml_fault("<a>1 < 2</a>") != "");
  CHECK(xml_fault("<a>2 > 1</a>") != "");
  CHECK(xml_fault(to_svg_of({predicted(), measured()})) == "");
}

TEST_CASE("SVG: a figure of nothing is still a figure", "[plan][svg]") {
  CHECK(xml_fault(to_svg({}, "")) == "");
  const std::string svg = to_svg_of({of_spans("empty", 0, {})});
  CHECK(xml_fault(svg) == "");
  CHECK(svg.find("nan") == std::string::npos);
}

TEST_CASE("SVG: the same time has the same place in every timeline", "[plan][svg]") {
  const auto forwards = extents(to_svg_of({predicted(), measured()}), "F");
  REQUIRE(forwards.size() == 2);
  CHECK(forwards[0].left == forwards[1].left);
  CHECK(forwards[0].width == forwards[1].width);
}

TEST_CASE("SVG: the longest timeline fills the axis, a shorter one ends before", "[plan][svg]") {
  const auto idle = extents(to_svg_of({predicted(), measured()}), "idle");
  REQUIRE(idle.size() == 2);
  CHECK(idle[0].left == idle[1].left);
  CHECK(idle[0].width / idle[1].width == Approx(8.0 / 10));
}

TEST_CASE("SVG: bars are as long as their spans", "[plan][svg]") {
  const std::string svg = to_svg_of({predicted()});
  CHECK(extents(svg, "B").at(0).width == Approx(2 * extents(svg, "F").at(0).width));
  CHECK(extents(svg, "STEP").at(0).width == Approx(extents(svg, "F").at(0).width / 2));
}

TEST_CASE("SVG: titles and names may hold what XML gives a meaning to", "[plan][svg]") {
  const std::string svg = to_svg({of_spans("\"a\" & <b>\n", 1, {})}, "P<4 & M>\"8\"");
  CHECK(xml_fault(svg) == "");
  CHECK(all_between(svg, "<title>", "</title>").at(0) == "P&lt;4 &amp; M&gt;&quot;8&quot;");
  CHECK(count_text(svg, "P&lt;4 &amp; M&gt;&quot;8&quot;") == 1);
  CHECK(count_text(svg, "&quot;a&quot; &amp; &lt;b&gt; ") == 1);
}

TEST_CASE("SVG: transfers draw no bars", "[plan][svg]") {
  const auto svg = to_svg_of({of_spans("t", 1, {{0, Lane::Send, "0SEND_F0", {0}, {1}}})});
  CHECK(paths(svg, "other").empty());
  CHECK(paths(svg, "idle").size() == 1);
}

TEST_CASE("SVG: figures of each rank stand beside its row", "[plan][svg]") {
  const std::string svg = to_svg_of({predicted()});
  for (const char* text : {"87.5 %", "12.5 %", "iteration 8.00 s, mean bubble 12.5 %"})
    CHECK(count_text(svg, text) == 1);
  CHECK(count_text(svg, "rank 0") == 2);   // at its bars and at its memory
  CHECK(count_text(svg, "1.50 GB") == 2);  // its peak, and the top of the memory axis
}

TEST_CASE("SVG: memory has one scale, named after the largest of all timelines", "[plan][svg]") {
  const std::string svg = to_svg_of({predicted(), measured()});
  CHECK(count_text(svg, "2.00 GB") == 3);  // at both axes, and as the peak that was measured
  const auto areas = paths(svg, "memory");
  REQUIRE(areas.size() == 2);
  for (const std::string& area : areas) {
    // Both start with 1 GB, which is half a strip of 26 above the base.
    const std::string data = attribute(area, "d");
    const double base = std::stod(all_between(data, "M76 ", "H").at(0));
    CHECK(base - std::stod(all_between(data, "V", "H").at(0)) == Approx(13));
  }
}

TEST_CASE("SVG: wide bars carry their microbatch, narrow ones nothing", "[plan][svg]") {
  const std::vector<Span> spans{{0, Lane::Compute, "0F77", {0}, {5}}};
  CHECK(count_text(to_svg_of({of_spans("t", 10, spans)}), "77") == 1);
  CHECK(count_text(to_svg_of({of_spans("t", 10'000, spans)}), "77") == 0);
}

TEST_CASE("SVG: ten thousand narrow bars are one path", "[plan][svg]") {
  std::vector<Span> spans;
  for (int m = 0; m < 10'000; ++m)
    spans.push_back({0, Lane::Compute, "0F" + std::to_string(m), {1.0 * m}, {m + 0.5}});
  const std::string svg = to_svg_of({of_spans("t", 10'000, spans)});
  CHECK(paths(svg, "F").size() == 1);
  CHECK(std::count(svg.begin(), svg.end(), '<') < 100);
}

TEST_CASE("SVG: the axis has round ticks in the unit that suits", "[plan][svg]") {
  const std::string in_ms = to_svg_of({of_spans("t", 0.0123, {})});
  for (const char* text : {"0", "2", "10", "12", "time in ms"})
    CHECK(count_text(in_ms, text) == 1);
  const std::string in_s = to_svg_of({of_spans("t", 2.2, {})});
  for (const char* text : {"0.0", "0.2", "2.2", "time in s"})
    CHECK(count_text(in_s, text) == 1);
}

TEST_CASE("SVG: a rank's later stages are lighter than its first", "[plan][svg]") {
  const std::string svg = to_svg_of({of_spans(
      "t", 2, {{0, Lane::Compute, "0F0", {0}, {1}}, {0, Lane::Compute, "2F0", {1}, {2}}})});
  const auto forwards = paths(svg, "F");
  REQUIRE(forwards.size() == 2);
  CHECK(attribute(forwards[0], "fill-opacity") == "1");
  CHECK(attribute(forwards[1], "fill-opacity") == "0.55");
  CHECK(count_text(svg, "lighter: later stages of the same rank") == 1);
}
