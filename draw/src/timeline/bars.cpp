#include <algorithm>
#include <map>
#include <optional>

#include "parts.hpp"
#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/timeline/shard_waits.hpp"
#include "pipewright/plan/timeline/side_by_side.hpp"

namespace pipewright::draw {
namespace {

/// Bars of one color in one row. They become one path.
struct Bars {
  std::vector<Box> boxes;
  double narrowest = plot_width;
};
using BarGroups = std::map<std::pair<std::size_t, int>, Bars>;  // by look and by chunk

/// Returns the opacity of a chunk. Later chunks of a rank are lighter, as in papers on interleaved
/// schedules.
double opacity_of(int chunk) { return std::max(0.3, 1 - 0.45 * chunk); }

/// The vertical extent of a bar: its whole row, or half of it.
struct Place {
  double y = 0, height = 0;
};

/// Returns the extents of the bars. Two actions that overlap in time share the row, the earlier one
/// above.
std::vector<Place> places_of(const std::vector<const plan::Span*>& spans, double y,
                             const Figure& figure) {
  const double whole = figure.rows.bar;
  std::vector<Place> places(spans.size(), {y, whole});
  std::vector<std::size_t> computing;
  for (std::size_t at = 0; at < spans.size(); ++at)
    if (spans[at]->row == plan::Row::Compute)
      computing.push_back(at);
  std::stable_sort(computing.begin(), computing.end(),
                   [&](std::size_t a, std::size_t b) { return spans[a]->start < spans[b]->start; });
  for (std::size_t at = 0; at + 1 < computing.size(); ++at) {
    if (!plan::are_side_by_side(*spans[computing[at]], *spans[computing[at + 1]]))
      continue;
    places[computing[at]].height = whole / 2;
    places[computing[at + 1]] = {y + whole / 2, whole / 2};
  }
  return places;
}

/// Returns the microbatch as a label, if the bar is wide enough.
std::optional<Label> label_of(const plan::Instruction& instruction, double x, double width,
                              const Place& place, double font) {
  if (font <= 0 || !is_labeled(instruction))
    return {};
  font = std::min(font, 0.9 * place.height);
  Label label{.x = x + width / 2,
              .y = place.y + place.height / 2 + font * 0.36,
              .text = std::to_string(instruction.microbatch),
              .font = font};
  if (width < label_width(label.text.size(), font))
    return {};
  return label;
}

void draw_groups(Scene& scene, BarGroups groups) {
  for (auto& [key, bars] : groups) {
    const auto& [look, chunk] = key;
    // A white edge separates neighbors, but must not hide narrow bars.
    const double edge = std::clamp(0.12 * bars.narrowest, 0.0, 0.9);
    scene.add(Boxes{{.name = look + 1 == kind_looks.size() ? "other" : kind_looks[look].kind,
                     .fill = kind_looks[look].fill,
                     .fill_opacity = opacity_of(chunk),
                     .stroke = "#ffffff",
                     .stroke_width = edge},
                    std::move(bars.boxes)});
  }
}

/// Marks at the foot of each bar that is wide enough which part is tensor-parallel communication.
void draw_shards(Scene& scene, const std::vector<const plan::Span*>& spans,
                 const std::vector<Place>& places, const plan::WorkEnds& ends,
                 const Figure& figure) {
  constexpr double least_width = 6, height = 2.5;
  Boxes shares{{.name = "passing on", .fill = "#ffffff", .fill_opacity = 0.75}, {}};
  for (std::size_t at = 0; at < spans.size(); ++at) {
    const plan::Span* const span = spans[at];
    const double x = figure.time.x(span->start), width = figure.time.x(span->end) - x;
    const plan::Seconds shards = span->shards - span->late;
    if (shards <= plan::Seconds{} || width < least_width)
      continue;
    const double end = figure.time.x(ends.of(span->rank, span->start, span->end));
    const double share = std::min(width * (shards / (span->end - span->start)), end - x);
    const double foot = places[at].y + places[at].height;
    shares.add({end - share, foot - height, share, height, {}});
  }
  if (!shares.boxes.empty())
    scene.add(std::move(shares));
}

void draw_row(Scene& scene, const std::vector<const plan::Span*>& spans, double y,
              std::vector<Label>& labels, const plan::WorkEnds& ends, const Figure& figure) {
  const auto chunks = chunks_of(spans);
  const auto places = places_of(spans, y, figure);
  BarGroups groups;
  for (std::size_t at = 0; at < spans.size(); ++at) {
    const plan::Span* const span = spans[at];
    const Place& place = places[at];
    if (span->row != plan::Row::Compute)
      continue;
    const auto instruction = plan::parse_instruction(span->action);
    const int chunk = instruction ? chunks.at(instruction->stage) : 0;
    const double x = figure.time.x(span->start);
    const double width = figure.time.x(ends.of(span->rank, span->start, span->end)) - x;
    const std::size_t look = look_index(plan::kind_of(span->action));
    Bars& bars = groups[{look, chunk}];
    bars.boxes.push_back({x, place.y, width, place.height, tooltip_of(*span)});
    bars.narrowest = std::min(bars.narrowest, width);
    if (!instruction)
      continue;
    if (auto label = label_of(*instruction, x, width, place, figure.label_fonts[look])) {
      label->on_light = chunk > 0;
      labels.push_back(std::move(*label));
    }
  }
  draw_groups(scene, std::move(groups));
  draw_shards(scene, spans, places, ends, figure);
}

}  // namespace

std::vector<Label> draw_bars(Scene& scene, const plan::Timeline& timeline, double top,
                             const Figure& figure) {
  const auto rows = by_rank(timeline.spans, timeline.ranks);
  const plan::WorkEnds ends(timeline.idle, timeline.ranks);
  std::vector<Label> labels;
  for (int rank = 0; rank < timeline.ranks; ++rank)
    draw_row(scene, rows[static_cast<std::size_t>(rank)], figure.rank_top(top, rank), labels, ends,
             figure);
  return labels;
}

void draw_labels(Scene& scene, const std::vector<Label>& labels) {
  for (const Label& label : labels)
    scene.words(
        label.x, label.y, label.text,
        {.size = label.font, .fill = label.on_light ? dark : "#ffffff", .anchor = Anchor::Middle});
}

}  // namespace pipewright::draw
