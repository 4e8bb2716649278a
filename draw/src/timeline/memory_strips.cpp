#include <fmt/format.h>

#include <algorithm>

#include "parts.hpp"
#include "text/figure_text.hpp"

namespace pipewright::draw {
namespace {

/// Returns the samples in order of time. Of several samples at the same instant only the last is
/// kept, because the others held for no time.
std::vector<const plan::MemorySample*> lasting(std::vector<const plan::MemorySample*> samples) {
  std::stable_sort(samples.begin(), samples.end(),
                   [](const auto* a, const auto* b) { return a->time < b->time; });
  std::vector<const plan::MemorySample*> kept;
  for (const plan::MemorySample* sample : samples) {
    if (!kept.empty() && kept.back()->time == sample->time)
      kept.pop_back();
    kept.push_back(sample);
  }
  return kept;
}

/// Draws the step function of a rank's memory, filled down to its base line.
void draw_curve(Scene& scene, const std::vector<const plan::MemorySample*>& samples,
                plan::Seconds length, double top, const Figure& figure) {
  const double base = top + figure.rows.strip;
  const double most = std::max(1.0, static_cast<double>(figure.most_memory.value));
  const auto y = [&](plan::Bytes held) {
    return base - static_cast<double>(held.value) / most * figure.rows.strip;
  };
  Lines area{{.name = "memory", .fill = memory_fill}};
  Lines line{{.fill = "none", .stroke = memory_line, .stroke_width = 0.9}};
  area.move_to(figure.time.x(samples.front()->time), base);
  line.move_to(figure.time.x(samples.front()->time), y(samples.front()->held));
  for (const plan::MemorySample* sample : samples)
    for (Lines* path : {&area, &line}) {
      path->across_to(figure.time.x(sample->time));
      path->up_or_down_to(y(sample->held));
    }
  for (Lines* path : {&area, &line})
    path->across_to(figure.time.x(length));
  area.up_or_down_to(base);
  area.close();
  scene.add(std::move(area));
  scene.add(std::move(line));
}

/// Labels the first strip. All strips have the same scale.
void draw_scale(Scene& scene, double top, const Figure& figure) {
  const double base = top + figure.rows.strip;
  Lines axis{{.fill = "none", .stroke = soft, .stroke_width = 0.8}};
  axis.move_to(plot_right + 8, top);
  axis.across_to(plot_right + 4);
  axis.up_or_down_to(base);
  axis.across_to(plot_right + 8);
  scene.add(std::move(axis));
  const TextLook look{.size = 9.5, .fill = soft};
  scene.words(plot_right + 12, top + 4, memory_text(figure.most_memory), look);
  scene.words(plot_right + 12, base + 3, "0", look);
}

}  // namespace

void draw_memory_strips(Scene& scene, const plan::Timeline& timeline, double top,
                        const Figure& figure) {
  const auto rows = by_rank(timeline.memory, timeline.ranks);
  draw_grid(scene, top, top + figure.strips_height(timeline.ranks), figure);
  Lines bases{{.stroke = "#9aa3ae", .stroke_width = 0.6}};
  for (int rank = 0; rank < timeline.ranks; ++rank) {
    const double y = figure.strip_top(top, rank);
    const auto& samples = rows[static_cast<std::size_t>(rank)];
    scene.words(plot_left - 8, y + figure.rows.strip / 2 + figure.rows.font * 0.36,
                fmt::format("rank {}", rank),
                {.size = figure.rows.font, .fill = soft, .anchor = Anchor::End});
    if (!samples.empty())
      draw_curve(scene, lasting(samples), timeline.length, y, figure);
    bases.move_to(plot_left, y + figure.rows.strip);
    bases.across_to(figure.time.x(timeline.length));
  }
  scene.add(std::move(bases));
  draw_scale(scene, top, figure);
}

}  // namespace pipewright::draw
