#include <fmt/format.h>

#include <algorithm>

#include "marks/legend.hpp"
#include "parts.hpp"
#include "text/figure_text.hpp"

namespace pipewright::draw {
namespace {

void add_causes(Legend& legend, const std::vector<plan::Timeline>& timelines) {
  std::vector<plan::IdleByCause> ranks;  // all ranks of all timelines
  for (const plan::Timeline& timeline : timelines)
    for (const plan::IdleByCause& rank : plan::idle_by_cause(timeline))
      ranks.push_back(rank);
  const plan::IdleByCause sums = plan::sum(ranks);
  plan::Seconds whole;
  for (const plan::Seconds sum : sums)
    whole += sum;
  if (whole.value <= 0)
    return;
  legend.end_line();
  legend.note("idle time by cause:");
  for (std::size_t cause = 0; cause < sums.size(); ++cause)
    if (sums[cause].value > 0)
      legend.box(fmt::format("{} {}", plan::idle_causes()[cause], percent_text(sums[cause], whole)),
                 {.fill = idle_tints[cause]});
}

}  // namespace

double draw_legend(Scene& scene, const std::vector<plan::Timeline>& timelines, double y,
                   const Figure& figure) {
  const auto any = [&](auto&& has) { return std::any_of(timelines.begin(), timelines.end(), has); };
  const bool all_have_causes = !timelines.empty() && !any([](const plan::Timeline& timeline) {
    return timeline.idle.empty();
  });

  Legend legend(scene, plot_left, page_width - page_margin, y);
  for (const std::size_t look : figure.looks)
    legend.box(kind_looks[look].meaning, {.fill = kind_looks[look].fill});
  if (!all_have_causes)
    legend.box("idle", {.fill = idle_fill});
  if (figure.wires.contains(plan::Row::Send))
    legend.line("send", {.stroke = send_fill, .stroke_width = 3});
  if (figure.wires.contains(plan::Row::Reduce))
    legend.line("reduction", {.stroke = reduce_fill, .stroke_width = 3});
  if (any([](const plan::Timeline& timeline) { return !timeline.critical.empty(); }))
    legend.line("critical path", critical_look());
  if (any(has_memory))
    legend.box("memory held", {.fill = memory_fill, .stroke = memory_line});
  if (figure.any_chunks)
    legend.note("lighter: later stages of the same rank");
  add_causes(legend, timelines);
  return legend.last_line();
}

}  // namespace pipewright::draw
