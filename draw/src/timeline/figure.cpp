#include "figure.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "pipewright/plan/program/program.hpp"
#include "text/figure_text.hpp"

namespace pipewright::draw {
namespace {

RowSizes row_sizes(int most_ranks) {
  if (most_ranks <= 4)
    return {.bar = 26, .strip = 26, .gap = 5, .font = 11, .wire = 4.5};
  if (most_ranks <= 8)
    return {.bar = 20, .strip = 18, .gap = 4, .font = 10.5, .wire = 3.5};
  if (most_ranks <= 32)
    return {.bar = 14, .strip = 12, .gap = 3, .font = 9.5, .wire = 2.8};
  return {.bar = 10, .strip = 9, .gap = 2.5, .font = 8.5, .wire = 2.2};
}

/// Returns the font size in which the longest number fits into the median bar of a kind, so that a
/// kind has labels on all bars or on none. Returns 0 if the font would be too small to read.
double label_font(std::vector<double> widths, std::size_t digits, double largest) {
  if (widths.empty())
    return 0;
  const auto middle = widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2);
  std::nth_element(widths.begin(), middle, widths.end());
  const double font = std::min(largest, (*middle - 3) / label_width(digits, 1));
  return font < 7 ? 0 : font;
}

void choose_label_fonts(Figure& figure, const std::vector<plan::Timeline>& timelines) {
  std::array<std::vector<double>, kind_looks.size()> widths;
  int last_microbatch = 0;
  for (const plan::Timeline& timeline : timelines)
    for (const plan::Span& span : timeline.spans) {
      if (span.row != plan::Row::Compute)
        continue;
      const auto instruction = plan::parse_instruction(span.action);
      if (!instruction || !is_labeled(*instruction))
        continue;
      last_microbatch = std::max(last_microbatch, instruction->microbatch);
      widths[look_index(plan::kind_of(span.action))].push_back((span.end - span.start).value *
                                                               figure.time.pixels_per_second);
    }
  const std::size_t digits = std::to_string(last_microbatch).size();
  for (std::size_t look = 0; look < widths.size(); ++look)
    figure.label_fonts[look] = label_font(std::move(widths[look]), digits, figure.rows.font);
}

/// Notes which elements occur in this timeline and need room or a legend key.
void note_contents(Figure& figure, const plan::Timeline& timeline) {
  figure.length = std::max(figure.length, timeline.length);
  for (const plan::Bytes peak : peak_per_rank(timeline))
    figure.most_memory = std::max(figure.most_memory, peak);
  for (const auto& [kind, busy] : busy_per_kind(timeline))
    figure.looks.insert(look_index(kind));
  for (const auto& spans : by_rank(timeline.spans, timeline.ranks))
    if (chunks_of(spans).size() > 1)
      figure.any_chunks = true;
  for (const plan::Span& span : timeline.spans)
    if (span.row == plan::Row::Send || span.row == plan::Row::Reduce)
      figure.wires.insert(span.row);
}

}  // namespace

double Figure::wire_offset(plan::Row row) const {
  const auto before = std::distance(wires.begin(), wires.find(row));
  return rows.bar + static_cast<double>(before) * rows.wire + 1;
}

int Figure::tick_count() const { return static_cast<int>(length.value / tick * (1 + 1e-9)) + 1; }

Figure lay_out(const std::vector<plan::Timeline>& timelines) {
  Figure figure;
  int most_ranks = 0;
  for (const plan::Timeline& timeline : timelines) {
    most_ranks = std::max(most_ranks, timeline.ranks);
    note_contents(figure, timeline);
  }
  if (figure.length.value <= 0)
    figure.length = {1};  // an empty timeline still has an axis
  figure.time.pixels_per_second = plot_width / figure.length.value;
  figure.tick = round_step(figure.length.value, 11);
  figure.rows = row_sizes(most_ranks);
  choose_label_fonts(figure, timelines);
  return figure;
}

bool has_memory(const plan::Timeline& timeline) { return !timeline.memory.empty(); }

double label_width(std::size_t digits, double font) {
  return 0.64 * font * static_cast<double>(digits);
}

bool is_labeled(const plan::Instruction& instruction) {
  return plan::traits_of(instruction.kind).action.has_value();
}

std::map<int, int> chunks_of(const std::vector<const plan::Span*>& spans) {
  std::map<int, int> chunks;
  for (const plan::Span* span : spans)
    if (span->row == plan::Row::Compute)
      if (const auto instruction = plan::parse_instruction(span->action))
        chunks.emplace(instruction->stage, 0);
  int next = 0;
  for (auto& [stage, chunk] : chunks)
    chunk = next++;
  return chunks;
}

}  // namespace pipewright::draw
