#include "pipewright/plan/timeline/timeline_facts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

namespace pipewright::plan {
namespace {

bool is_row_word(const std::string& name) {
  return std::any_of(all_rows.begin(), all_rows.end(),
                     [&](Row row) { return name == word_of(row); });
}

std::vector<MarkedStep> steps_of(const EventTable& table) {
  std::map<std::int64_t, MarkedStep> steps;
  for (const EventTrack& track : table.tracks) {
    if (track.name != steps_track)
      continue;
    for (std::uint64_t event = track.begin; event < track.end; ++event) {
      const auto number = step_number(table.name_at(event));
      if (!number)
        continue;
      const Seconds start{table.start[event]}, end{table.end[event]};
      MarkedStep& step = steps.try_emplace(*number, MarkedStep{*number, start, end}).first->second;
      step.start = std::min(step.start, start);
      step.end = std::max(step.end, end);
    }
  }
  std::vector<MarkedStep> by_start;
  for (const auto& [number, step] : steps)
    by_start.push_back(step);
  std::stable_sort(by_start.begin(), by_start.end(),
                   [](const auto& a, const auto& b) { return a.start < b.start; });
  return by_start;
}

}  // namespace

std::optional<std::int64_t> step_number(std::string_view name) {
  constexpr std::array<std::string_view, 3> marks{"ProfilerStep#", "step ", "iteration "};
  for (const std::string_view mark : marks) {
    if (!name.starts_with(mark))
      continue;
    std::int64_t number = 0;
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + mark.size(), end, number);
    if (read.ec == std::errc() && read.ptr == end && number >= 0)
      return number;
  }
  return {};
}

const MarkedStep* TimelineFacts::typical_step() const {
  if (steps.empty())
    return nullptr;
  std::vector<const MarkedStep*> order;
  for (const MarkedStep& step : steps)
    order.push_back(&step);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>((order.size() - 1) / 2);
  std::nth_element(order.begin(), middle, order.end(),
                   [](const auto* a, const auto* b) { return a->length() < b->length(); });
  return *middle;
}

TimelineFacts facts_of(const EventTable& table) {
  // Pipewright's own timelines have rows instead of threads, no names of ranks, and no nested
  // calls.
  const bool is_iteration =
      table.rank_names.empty() &&
      std::all_of(table.tracks.begin(), table.tracks.end(), [](const EventTrack& track) {
        return track.depth == 0 && is_row_word(track.name);
      });
  return {is_iteration, is_iteration ? std::vector<MarkedStep>{} : steps_of(table)};
}

std::optional<Seconds> iteration_of(const EventTable& table, const TimelineFacts& facts) {
  if (facts.is_iteration)
    return table.length;
  const MarkedStep* const step = facts.typical_step();
  return step != nullptr ? std::optional(step->length()) : std::nullopt;
}

}  // namespace pipewright::plan
