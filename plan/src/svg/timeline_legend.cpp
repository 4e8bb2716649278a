#include <algorithm>
#include <array>

#include "figure_text.hpp"
#include "legend.hpp"
#include "parts.hpp"

namespace pipewright::plan::drawing {
namespace {

/// Idle time by cause, over all ranks of all timelines.
std::array<Seconds, idle_tints.size()> idle_by_cause(const std::vector<Timeline>& timelines) {
  std::array<Seconds, idle_tints.size()> sums{};
  for (const Timeline& timeline : timelines)
    for (const IdleSpan& idle : timeline.idle)
      sums[static_cast<std::size_t>(idle.cause)] += idle.end - idle.start;
  return sums;
}

void add_causes(Legend& legend, const std::vector<Timeline>& timelines) {
  const auto sums = idle_by_cause(timelines);
  Seconds whole;
  for (const Seconds sum : sums)
    whole += sum;
  if (whole.value <= 0)
    return;
  legend.end_line();
  legend.note("idle time by cause:");
  for (std::size_t cause = 0; cause < sums.size(); ++cause)
    if (sums[cause].value > 0)
      legend.box(fmt::format("{} {}", idle_causes()[cause], percent_text(sums[cause], whole)),
                 fmt::format("fill=\"{}\"", idle_tints[cause]));
}

}  // namespace

double draw_legend(SvgWriter& svg, const std::vector<Timeline>& timelines, double y,
                   const Figure& figure) {
  const auto any = [&](auto&& has) { return std::any_of(timelines.begin(), timelines.end(), has); };
  const bool all_have_causes =
      !timelines.empty() && !any([](const Timeline& timeline) { return timeline.idle.empty(); });

  Legend legend(svg, plot_left, page_width - page_margin, y);
  for (const std::size_t look : figure.looks)
    legend.box(kind_looks[look].meaning, fmt::format("fill=\"{}\"", kind_looks[look].fill));
  if (!all_have_causes)
    legend.box("idle", fmt::format("fill=\"{}\"", idle_fill));
  if (figure.wires.contains(Lane::Send))
    legend.line("send", fmt::format("stroke=\"{}\" stroke-width=\"3\"", send_fill));
  if (figure.wires.contains(Lane::Reduce))
    legend.line("reduction", fmt::format("stroke=\"{}\" stroke-width=\"3\"", reduce_fill));
  if (any([](const Timeline& timeline) { return !timeline.critical.empty(); }))
    legend.line("critical path", critical_look);
  if (any(has_memory))
    legend.box("memory held", fmt::format("fill=\"{}\" stroke=\"{}\"", memory_fill, memory_line));
  if (figure.any_chunks)
    legend.note("lighter: later stages of the same rank");
  add_causes(legend, timelines);
  return legend.last_line();
}

}  // namespace pipewright::plan::drawing
