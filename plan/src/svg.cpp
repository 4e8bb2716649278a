// Timelines as a figure. Everything is placed by three values: a TimeScale (time → x), a RowSizes
// (how tall rows are, so that many ranks still fit a page) and the y at which a panel begins.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "pipewright/plan/program.hpp"
#include "pipewright/plan/timeline.hpp"
#include "svg_writer.hpp"

namespace pipewright::plan {
namespace {

constexpr double page_width = 1200;
constexpr double page_margin = 20;
constexpr double plot_left = 76;
constexpr double plot_width = 890;
constexpr double plot_right = plot_left + plot_width;
constexpr double busy_column = 1034;  // the right edge of each column of figures
constexpr double bubble_column = 1098;
constexpr double peak_column = 1184;

constexpr const char* dark = "#1f2630";
constexpr const char* soft = "#68727f";
constexpr const char* idle_fill = "#eceef1";
constexpr const char* memory_fill = "#d9cfe8";
constexpr const char* memory_line = "#6b4fa0";

struct KindLook {
  const char* kind;
  const char* fill;
  const char* meaning;
};
/// In the order of the legend; the last is for kinds that are not listed.
constexpr std::array<KindLook, 8> kind_looks{{
    {"F", "#3f78c0", "forward"},
    {"B", "#43a05c", "backward"},
    {"I", "#169aa5", "input gradient"},
    {"W", "#a39a2c", "weight gradient"},
    {"R", "#7c93b8", "recompute"},
    {"LOAD", "#b4bac3", "load"},
    {"STEP", "#e5532d", "optimizer step"},
    {"", "#5b6068", "other"},
}};

std::size_t look_index(std::string_view kind) {
  const auto found = std::find_if(kind_looks.begin(), kind_looks.end() - 1,
                                  [&](const KindLook& look) { return look.kind == kind; });
  return static_cast<std::size_t>(found - kind_looks.begin());
}

struct TimeScale {
  double pixels_per_second = 0;
  double x(Seconds time) const { return plot_left + time.value * pixels_per_second; }
};

struct RowSizes {
  double bar = 0;
  double strip = 0;  // of one rank's memory
  double gap = 0;
  double font = 0;
};

RowSizes row_sizes(int most_ranks) {
  if (most_ranks <= 4)
    return {.bar = 26, .strip = 26, .gap = 5, .font = 11};
  if (most_ranks <= 8)
    return {.bar = 20, .strip = 18, .gap = 4, .font = 10.5};
  return {.bar = 14, .strip = 12, .gap = 3, .font = 9.5};
}

/// What all panels of the figure share.
struct Figure {
  TimeScale time;
  Seconds length;  // of the axis
  double tick = 0;
  RowSizes rows;
  Bytes most_memory;  // the top of every memory strip
  bool any_chunks = false;
  std::set<std::size_t> looks;                          // of the kinds that occur
  std::array<double, kind_looks.size()> label_fonts{};  // 0: too narrow for labels
};

/// Bars of one colour in one row: one path, however many they are.
struct Bars {
  PathData path;
  double narrowest = plot_width;
};

struct Label {
  double x = 0;
  double y = 0;
  std::string text;
  double font = 0;
  bool on_light = false;
};

/// Enough digits to tell 1.23 from 1.24, and no more.
std::string three_digits(double value) {
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string memory_text(Bytes bytes) {
  if (bytes.value < 1000)
    return fmt::format("{} B", bytes.value);
  double value = static_cast<double>(bytes.value);
  const char* unit = "B";
  for (const char* larger : {"kB", "MB", "GB", "TB"}) {
    if (value < 999.5)
      break;
    value /= 1000;
    unit = larger;
  }
  return fmt::format("{} {}", three_digits(value), unit);
}

std::string time_text(Seconds time) {
  const bool in_seconds = time.value >= 1;
  return fmt::format("{} {}", three_digits(in_seconds ? time.value : time.value * 1e3),
                     in_seconds ? "s" : "ms");
}

std::string percent_text(Seconds part, Seconds whole) {
  if (whole.value <= 0)
    return "-";
  return fmt::format("{:.1f} %", 100 * (part / whole));
}

/// The round step (1, 2 or 5 times a power of ten) that gives about ten ticks.
double round_step(double length) {
  const double rough = length / 11;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough)
      return factor * power;
  return 10 * power;
}

int tick_count(const Figure& figure) {
  return static_cast<int>(figure.length.value / figure.tick * (1 + 1e-9)) + 1;
}

bool has_memory(const Timeline& timeline) { return !timeline.memory.empty(); }

template <class Item>
std::vector<std::vector<const Item*>> by_rank(const std::vector<Item>& items, int ranks) {
  std::vector<std::vector<const Item*>> rows(static_cast<std::size_t>(ranks));
  for (const Item& item : items)
    rows[static_cast<std::size_t>(item.rank)].push_back(&item);
  return rows;
}

/// The chunk of each stage that a rank holds: 0 for its first stage, 1 for its second.
std::map<int, int> chunks_of(const std::vector<const Span*>& spans) {
  std::map<int, int> chunks;
  for (const Span* span : spans)
    if (const auto instruction = parse_instruction(span->action))
      chunks.emplace(instruction->stage, 0);
  int next = 0;
  for (auto& [stage, chunk] : chunks)
    chunk = next++;
  return chunks;
}

/// About how wide a microbatch's number is.
double label_width(std::size_t digits, double font) {
  return 0.64 * font * static_cast<double>(digits);
}

bool is_labelled(const Instruction& instruction) {
  return is_compute(instruction.kind) && instruction.kind != InstructionKind::Load &&
         instruction.microbatch >= 0;
}

/// The font in which the longest number fits the usual bar of a kind, so that a kind has its labels
/// everywhere or nowhere; one that nobody could read is left out.
double label_font(std::vector<double> widths, std::size_t digits, double largest) {
  if (widths.empty())
    return 0;
  const auto middle = widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2);
  std::nth_element(widths.begin(), middle, widths.end());
  const double font = std::min(largest, (*middle - 3) / label_width(digits, 1));
  return font < 7 ? 0 : font;
}

void choose_label_fonts(Figure& figure, const std::vector<Timeline>& timelines) {
  std::array<std::vector<double>, kind_looks.size()> widths;
  int last_microbatch = 0;
  for (const Timeline& timeline : timelines)
    for (const Span& span : timeline.spans) {
      const auto instruction = parse_instruction(span.action);
      if (span.lane != Lane::Compute || !instruction || !is_labelled(*instruction))
        continue;
      last_microbatch = std::max(last_microbatch, instruction->microbatch);
      widths[look_index(kind_of(span.action))].push_back((span.end - span.start).value *
                                                         figure.time.pixels_per_second);
    }
  const std::size_t digits = std::to_string(last_microbatch).size();
  for (std::size_t look = 0; look < widths.size(); ++look)
    figure.label_fonts[look] = label_font(std::move(widths[look]), digits, figure.rows.font);
}

Figure lay_out(const std::vector<Timeline>& timelines) {
  Figure figure;
  int most_ranks = 0;
  for (const Timeline& timeline : timelines) {
    figure.length = std::max(figure.length, timeline.length);
    most_ranks = std::max(most_ranks, timeline.ranks);
    for (const Bytes peak : peak_per_rank(timeline))
      figure.most_memory = std::max(figure.most_memory, peak);
    for (const auto& [kind, busy] : busy_per_kind(timeline))
      figure.looks.insert(look_index(kind));
    for (const auto& spans : by_rank(timeline.spans, timeline.ranks))
      if (chunks_of(spans).size() > 1)
        figure.any_chunks = true;
  }
  if (figure.length.value <= 0)
    figure.length = {1};  // nothing to show still has an axis
  figure.time.pixels_per_second = plot_width / figure.length.value;
  figure.tick = round_step(figure.length.value);
  figure.rows = row_sizes(most_ranks);
  choose_label_fonts(figure, timelines);
  return figure;
}

/// Later chunks of a rank are lighter, as papers draw interleaved schedules.
double opacity_of(int chunk) { return std::max(0.3, 1 - 0.45 * chunk); }

/// The microbatch, where the bar has room for it.
std::optional<Label> label_of(const Instruction& instruction, double x, double width, double y,
                              double font, const Figure& figure) {
  if (font <= 0 || !is_labelled(instruction))
    return {};
  Label label{.x = x + width / 2,
              .y = y + figure.rows.bar / 2 + font * 0.36,
              .text = std::to_string(instruction.microbatch),
              .font = font};
  if (width < label_width(label.text.size(), font))
    return {};
  return label;
}

/// The compute spans of one rank; labels are returned, because they stand above all bars.
std::vector<Label> draw_bars(SvgWriter& svg, const std::vector<const Span*>& spans, double y,
                             const Figure& figure) {
  const auto chunks = chunks_of(spans);
  std::map<std::pair<std::size_t, int>, Bars> groups;  // by look and chunk
  std::vector<Label> labels;
  for (const Span* span : spans) {
    if (span->lane != Lane::Compute)
      continue;
    const auto instruction = parse_instruction(span->action);
    const int chunk = instruction ? chunks.at(instruction->stage) : 0;
    const double x = figure.time.x(span->start);
    const double width = figure.time.x(span->end) - x;
    const std::size_t look = look_index(kind_of(span->action));
    Bars& bars = groups[{look, chunk}];
    bars.path.box(x, y, width, figure.rows.bar);
    bars.narrowest = std::min(bars.narrowest, width);
    if (!instruction)
      continue;
    if (auto label = label_of(*instruction, x, width, y, figure.label_fonts[look], figure)) {
      label->on_light = chunk > 0;
      labels.push_back(std::move(*label));
    }
  }
  for (const auto& [key, bars] : groups) {
    const auto& [look, chunk] = key;
    // A white edge parts neighbours; it must not eat up narrow bars.
    const double edge = std::clamp(0.12 * bars.narrowest, 0.0, 0.9);
    svg.path(bars.path, fmt::format("class=\"{}\" fill=\"{}\" fill-opacity=\"{:.2g}\" "
                                    "stroke=\"#ffffff\" stroke-width=\"{}\"",
                                    look + 1 == kind_looks.size() ? "other" : kind_looks[look].kind,
                                    kind_looks[look].fill, opacity_of(chunk), pixels(edge)));
  }
  return labels;
}

/// In order of time, and of several samples at one instant the last: the others held for no time.
std::vector<const MemorySample*> lasting(std::vector<const MemorySample*> samples) {
  std::stable_sort(samples.begin(), samples.end(),
                   [](const auto* a, const auto* b) { return a->time < b->time; });
  std::vector<const MemorySample*> kept;
  for (const MemorySample* sample : samples) {
    if (!kept.empty() && kept.back()->time == sample->time)
      kept.pop_back();
    kept.push_back(sample);
  }
  return kept;
}

/// The step function of one rank's memory, filled down to its base line.
void draw_memory(SvgWriter& svg, const std::vector<const MemorySample*>& samples, Seconds length,
                 double top, const Figure& figure) {
  const double base = top + figure.rows.strip;
  const double most = std::max(1.0, static_cast<double>(figure.most_memory.value));
  const auto y = [&](Bytes held) {
    return base - static_cast<double>(held.value) / most * figure.rows.strip;
  };
  PathData area;
  PathData line;
  area.move_to(figure.time.x(samples.front()->time), base);
  line.move_to(figure.time.x(samples.front()->time), y(samples.front()->held));
  for (const MemorySample* sample : samples)
    for (PathData* path : {&area, &line}) {
      path->across_to(figure.time.x(sample->time));
      path->up_or_down_to(y(sample->held));
    }
  for (PathData* path : {&area, &line})
    path->across_to(figure.time.x(length));
  area.up_or_down_to(base);
  area.close();
  svg.path(area, fmt::format("class=\"memory\" fill=\"{}\"", memory_fill));
  svg.path(line, fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"0.9\"", memory_line));
}

double rows_height(int ranks, double row, const Figure& figure) {
  return ranks * (row + figure.rows.gap) - figure.rows.gap;
}

/// Thin lines at the ticks, between `top` and `bottom`.
void draw_grid(SvgWriter& svg, double top, double bottom, const Figure& figure) {
  PathData grid;
  for (int i = 0; i < tick_count(figure); ++i) {
    grid.move_to(figure.time.x({i * figure.tick}), top);
    grid.up_or_down_to(bottom);
  }
  svg.path(grid, "stroke=\"#cfd4da\" stroke-width=\"0.6\"");
}

void draw_heading(SvgWriter& svg, const Timeline& timeline, double y) {
  Seconds bubble;
  for (const Seconds rank : bubble_per_rank(timeline))
    bubble += rank;
  svg.text(plot_left, y, timeline.name, {.size = 14, .fill = dark, .bold = true});
  svg.text(plot_right, y,
           fmt::format("iteration {}, mean bubble {}", time_text(timeline.length),
                       percent_text(bubble, timeline.length * timeline.ranks)),
           {.size = 12, .anchor = Anchor::End});
  const TextLook column{.size = 10.5, .fill = soft, .anchor = Anchor::End};
  svg.text(busy_column, y, "busy", column);
  svg.text(bubble_column, y, "bubble", column);
  svg.text(peak_column, y, "peak memory", column);
}

/// The name of a rank to the left of its row, its figures to the right.
void draw_rank_figures(SvgWriter& svg, const Timeline& timeline, double top, const Figure& figure) {
  const auto busy = busy_per_rank(timeline);
  const auto bubble = bubble_per_rank(timeline);
  const auto peak = peak_per_rank(timeline);
  const TextLook look{.size = figure.rows.font, .anchor = Anchor::End};
  for (std::size_t rank = 0; rank < busy.size(); ++rank) {
    const double y = top + static_cast<double>(rank) * (figure.rows.bar + figure.rows.gap) +
                     figure.rows.bar / 2 + figure.rows.font * 0.36;
    svg.text(plot_left - 8, y, fmt::format("rank {}", rank), look);
    svg.text(busy_column, y, percent_text(busy[rank], timeline.length), look);
    svg.text(bubble_column, y, percent_text(bubble[rank], timeline.length), look);
    svg.text(peak_column, y, has_memory(timeline) ? memory_text(peak[rank]) : "-", look);
  }
}

/// The rows of bars. Idle time is what shows of the pale ground, which ends with the iteration.
void draw_ranks(SvgWriter& svg, const Timeline& timeline, double top, const Figure& figure) {
  const auto row_top = [&](std::size_t rank) {
    return top + static_cast<double>(rank) * (figure.rows.bar + figure.rows.gap);
  };
  const auto rows = by_rank(timeline.spans, timeline.ranks);
  PathData ground;
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    ground.box(plot_left, row_top(rank), figure.time.x(timeline.length) - plot_left,
               figure.rows.bar);
  svg.path(ground, fmt::format("class=\"idle\" fill=\"{}\"", idle_fill));
  draw_grid(svg, top, top + rows_height(timeline.ranks, figure.rows.bar, figure), figure);

  std::vector<Label> labels;
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    for (Label& label : draw_bars(svg, rows[rank], row_top(rank), figure))
      labels.push_back(std::move(label));
  for (const Label& label : labels)
    svg.text(
        label.x, label.y, label.text,
        {.size = label.font, .fill = label.on_light ? dark : "#ffffff", .anchor = Anchor::Middle});
  draw_rank_figures(svg, timeline, top, figure);
}

/// One strip of memory a rank, from 0 to the most that any rank of any timeline holds.
void draw_strips(SvgWriter& svg, const Timeline& timeline, double top, const Figure& figure) {
  const auto rows = by_rank(timeline.memory, timeline.ranks);
  draw_grid(svg, top, top + rows_height(timeline.ranks, figure.rows.strip, figure), figure);
  PathData bases;
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    const double y = top + static_cast<double>(rank) * (figure.rows.strip + figure.rows.gap);
    const double base = y + figure.rows.strip;
    svg.text(plot_left - 8, y + figure.rows.strip / 2 + figure.rows.font * 0.36,
             fmt::format("rank {}", rank),
             {.size = figure.rows.font, .fill = soft, .anchor = Anchor::End});
    if (!rows[rank].empty())
      draw_memory(svg, lasting(rows[rank]), timeline.length, y, figure);
    bases.move_to(plot_left, base);
    bases.across_to(figure.time.x(timeline.length));
  }
  svg.path(bases, "stroke=\"#9aa3ae\" stroke-width=\"0.6\"");

  // The axis of the strips, at the first of them; it is the same for all.
  const double base = top + figure.rows.strip;
  PathData axis;
  axis.move_to(plot_right + 8, top);
  axis.across_to(plot_right + 4);
  axis.up_or_down_to(base);
  axis.across_to(plot_right + 8);
  svg.path(axis, fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"0.8\"", soft));
  const TextLook look{.size = 9.5, .fill = soft};
  svg.text(plot_right + 12, top + 4, memory_text(figure.most_memory), look);
  svg.text(plot_right + 12, base + 3, "0", look);
}

/// One timeline; returns the y where the next thing may begin.
double draw_panel(SvgWriter& svg, const Timeline& timeline, double top, const Figure& figure) {
  draw_heading(svg, timeline, top + 12);
  double y = top + 20;
  draw_ranks(svg, timeline, y, figure);
  y += rows_height(timeline.ranks, figure.rows.bar, figure);
  if (has_memory(timeline)) {
    svg.text(plot_left, y + 18, "memory held", {.size = 10.5, .fill = soft});
    y += 25;
    draw_strips(svg, timeline, y, figure);
    y += rows_height(timeline.ranks, figure.rows.strip, figure);
  }
  return y + 26;
}

/// One axis under all panels, which share its scale; returns the y below it.
double draw_axis(SvgWriter& svg, double y, const Figure& figure) {
  const bool in_seconds = figure.length.value >= 1;
  const double unit = in_seconds ? 1 : 1e-3;
  const int decimals =
      std::clamp(static_cast<int>(-std::floor(std::log10(figure.tick / unit) + 1e-9)), 0, 9);
  PathData axis;
  axis.move_to(plot_left, y);
  axis.across_to(plot_right);
  for (int i = 0; i < tick_count(figure); ++i) {
    const double x = figure.time.x({i * figure.tick});
    axis.move_to(x, y);
    axis.up_or_down_to(y + 5);
    svg.text(x, y + 18, fmt::format("{:.{}f}", i * figure.tick / unit, decimals),
             {.anchor = Anchor::Middle});
  }
  svg.path(axis, "fill=\"none\" stroke=\"#333b45\" stroke-width=\"1\"");
  svg.text(plot_right + 16, y + 18, in_seconds ? "time in s" : "time in ms", {});
  return y + 34;
}

/// One entry of the legend; returns the x where the next may begin.
double draw_key(SvgWriter& svg, double x, double y, std::string_view attributes,
                std::string_view meaning) {
  PathData box;
  box.box(x, y - 9, 14, 11);
  svg.path(box, attributes);
  svg.text(x + 19, y, meaning, {});
  return x + 19 + 6.2 * static_cast<double>(meaning.size()) + 16;
}

void draw_legend(SvgWriter& svg, double y, bool memory, const Figure& figure) {
  double x = plot_left;
  for (const std::size_t look : figure.looks)
    x = draw_key(svg, x, y, fmt::format("fill=\"{}\"", kind_looks[look].fill),
                 kind_looks[look].meaning);
  x = draw_key(svg, x, y, fmt::format("fill=\"{}\"", idle_fill), "idle");
  if (memory)
    x = draw_key(svg, x, y, fmt::format("fill=\"{}\" stroke=\"{}\"", memory_fill, memory_line),
                 "memory held");
  if (figure.any_chunks)
    svg.text(x, y, "lighter: later stages of the same rank", {.fill = soft});
}

}  // namespace

std::string to_svg(const std::vector<Timeline>& timelines, const std::string& title) {
  const Figure figure = lay_out(timelines);
  SvgWriter svg;
  svg.text(plot_left, page_margin + 16, title, {.size = 18, .fill = dark, .bold = true});
  const bool memory = std::any_of(timelines.begin(), timelines.end(), has_memory);
  draw_legend(svg, page_margin + 40, memory, figure);
  double y = page_margin + 60;
  for (const Timeline& timeline : timelines)
    y = draw_panel(svg, timeline, y, figure);
  const double bottom = draw_axis(svg, y - 14, figure);
  return svg.document(page_width, bottom, title);
}

}  // namespace pipewright::plan
