#include "pipewright/gui/timeline/legend.hpp"

namespace pipewright::gui {
namespace {

constexpr double between = 14;

double width_of(const LegendEntry& entry, const QFontMetricsF& metrics) {
  return metrics.horizontalAdvance(entry.words) + (entry.height > 0 ? legend_box : 0);
}

}  // namespace

PlacedLegend placed(const std::vector<LegendEntry>& entries, const QFontMetricsF& metrics,
                    double left, double right) {
  double all = left - between;
  for (const LegendEntry& entry : entries)
    all += between + width_of(entry, metrics);
  const bool in_one = all <= right;

  PlacedLegend legend;
  double x = left;
  int row = 0;
  for (const LegendEntry& entry : entries) {
    const double width = width_of(entry, metrics);
    const bool begins = entry.height == 0 && !in_one;
    if (x > left && (begins || x + width > right)) {
      x = left;
      ++row;
    }
    legend.places.emplace_back(x, row);
    x += width + between;
  }
  legend.rows = row + 1;
  return legend;
}

}  // namespace pipewright::gui
