#include <algorithm>
#include <map>
#include <optional>

#include "parts.hpp"
#include "pipewright/plan/program.hpp"

namespace pipewright::plan::drawing {
namespace {

/// Bars of one colour in one row: one path, however many they are.
struct Bars {
  PathData path;
  double narrowest = plot_width;
};
using BarGroups = std::map<std::pair<std::size_t, int>, Bars>;  // by look and chunk

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

void draw_groups(SvgWriter& svg, const BarGroups& groups) {
  for (const auto& [key, bars] : groups) {
    const auto& [look, chunk] = key;
    // A white edge parts neighbours; it must not eat up narrow bars.
    const double edge = std::clamp(0.12 * bars.narrowest, 0.0, 0.9);
    svg.path(bars.path, fmt::format("class=\"{}\" fill=\"{}\" fill-opacity=\"{:.2g}\" "
                                    "stroke=\"#ffffff\" stroke-width=\"{}\"",
                                    look + 1 == kind_looks.size() ? "other" : kind_looks[look].kind,
                                    kind_looks[look].fill, opacity_of(chunk), pixels(edge)));
  }
}

void draw_row(SvgWriter& svg, const std::vector<const Span*>& spans, double y,
              std::vector<Label>& labels, const Figure& figure) {
  const auto chunks = chunks_of(spans);
  BarGroups groups;
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
  draw_groups(svg, groups);
}

}  // namespace

std::vector<Label> draw_bars(SvgWriter& svg, const Timeline& timeline, double top,
                             const Figure& figure) {
  const auto rows = by_rank(timeline.spans, timeline.ranks);
  std::vector<Label> labels;
  for (int rank = 0; rank < timeline.ranks; ++rank)
    draw_row(svg, rows[static_cast<std::size_t>(rank)], figure.rank_top(top, rank), labels, figure);
  return labels;
}

void draw_labels(SvgWriter& svg, const std::vector<Label>& labels) {
  for (const Label& label : labels)
    svg.text(
        label.x, label.y, label.text,
        {.size = label.font, .fill = label.on_light ? dark : "#ffffff", .anchor = Anchor::Middle});
}

}  // namespace pipewright::plan::drawing
