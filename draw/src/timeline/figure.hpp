#pragma once

// The layout of a timeline figure. TimeScale maps times to x. RowSizes holds the heights of rows,
// so that many ranks still fit on a page. The y of a panel is where it begins.

#include <array>
#include <map>
#include <set>
#include <vector>

#include "marks/looks.hpp"
#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::draw {

constexpr double page_width = 1200;
constexpr double page_margin = 20;
constexpr double plot_left = 76;
constexpr double plot_width = 890;
constexpr double plot_right = plot_left + plot_width;
constexpr double busy_column = 1034;  // right edges of the columns with figures
constexpr double bubble_column = 1098;
constexpr double peak_column = 1184;

struct TimeScale {
  double pixels_per_second = 0;
  double x(plan::Seconds time) const { return plot_left + time.value * pixels_per_second; }
};

struct RowSizes {
  double bar = 0;
  double strip = 0;  // of a rank's memory
  double gap = 0;
  double font = 0;
  double wire = 0;  // of a rank's sends or reductions, including the white gap above
};

/// The layout that all panels of the figure share.
struct Figure {
  TimeScale time;
  plan::Seconds length;  // of the time axis
  double tick = 0;
  RowSizes rows;
  plan::Bytes most_memory;    // full scale of the memory strips
  std::set<plan::Row> wires;  // rows drawn below the bars: Send, Reduce or both
  bool any_chunks = false;
  std::set<std::size_t> looks;  // of the kinds that occur
  /// By look; 0 if the bars are too narrow for labels.
  std::array<double, kind_looks.size()> label_fonts{};

  double row_height() const { return rows.bar + static_cast<double>(wires.size()) * rows.wire; }
  double rank_top(double top, int rank) const { return top + rank * (row_height() + rows.gap); }
  double ranks_height(int ranks) const { return ranks * (row_height() + rows.gap) - rows.gap; }
  double strip_top(double top, int rank) const { return top + rank * (rows.strip + rows.gap); }
  double strips_height(int ranks) const { return ranks * (rows.strip + rows.gap) - rows.gap; }
  /// Returns the distance from the top of a rank's row to the top of its sends or reductions.
  double wire_offset(plan::Row row) const;
  int tick_count() const;
};

Figure lay_out(const std::vector<plan::Timeline>& timelines);

bool has_memory(const plan::Timeline& timeline);
/// Returns the approximate width of a microbatch number.
double label_width(std::size_t digits, double font);
/// Returns true if bars of this kind show their microbatch.
bool is_labeled(const plan::Instruction& instruction);

template <class Item>
std::vector<std::vector<const Item*>> by_rank(const std::vector<Item>& items, int ranks) {
  std::vector<std::vector<const Item*>> rows(static_cast<std::size_t>(ranks));
  for (const Item& item : items)
    rows[static_cast<std::size_t>(item.rank)].push_back(&item);
  return rows;
}

/// Returns the chunk of each stage of a rank: 0 for its first stage, 1 for its second.
std::map<int, int> chunks_of(const std::vector<const plan::Span*>& spans);

}  // namespace pipewright::draw
