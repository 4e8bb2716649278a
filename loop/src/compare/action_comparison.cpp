#include "pipewright/loop/compare/action_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipewright/plan/timeline/spans_by_action.hpp"

namespace pipewright::loop {
namespace {

/// Returns the spans by action, without sends.
plan::SpansByAction compared_spans(const plan::Timeline& timeline) {
  plan::SpansByAction spans = spans_by_action(timeline);
  std::erase_if(spans, [](const auto& of) { return of.second.front()->row == plan::Row::Send; });
  return spans;
}

std::size_t count_of(const plan::SpansByAction& spans,
                     const plan::SpansByAction::key_type& action) {
  const auto found = spans.find(action);
  return found == spans.end() ? 0 : found->second.size();
}

/// Names the actions that occur more often in `spans` than in `others`.
std::vector<std::string> beyond(const plan::SpansByAction& others,
                                const plan::SpansByAction& spans) {
  std::vector<std::string> names;
  for (const auto& [action, own] : spans)
    for (std::size_t at = count_of(others, action); at < own.size(); ++at)
      names.push_back(fmt::format("rank {}, {}", action.first, action.second));
  return names;
}

}  // namespace

ActionComparison compare_actions(const plan::Timeline& predicted, const plan::Timeline& measured) {
  const plan::SpansByAction expected = compared_spans(predicted), seen = compared_spans(measured);
  ActionComparison comparison{.pairs = {},
                              .only_predicted = beyond(seen, expected),
                              .only_measured = beyond(expected, seen)};
  for (const auto& [action, spans] : expected)
    for (std::size_t at = 0; at < std::min(spans.size(), count_of(seen, action)); ++at) {
      const plan::Span& theirs = *spans[at];
      const plan::Span& own = *seen.at(action)[at];
      comparison.pairs.push_back({.rank = theirs.rank,
                                  .action = theirs.action,
                                  .predicted_start = theirs.start,
                                  .predicted = theirs.end - theirs.start,
                                  .measured_start = own.start,
                                  .measured = own.end - own.start});
    }
  std::stable_sort(comparison.pairs.begin(), comparison.pairs.end(),
                   [](const ActionPair& a, const ActionPair& b) {
                     return std::pair(a.rank, a.predicted_start) <
                            std::pair(b.rank, b.predicted_start);
                   });
  return comparison;
}

std::string actions_csv(const ActionComparison& comparison) {
  std::string text =
      "rank,action,predicted_start_s,predicted_s,measured_start_s,measured_s,error_s\n";
  for (const ActionPair& pair : comparison.pairs)
    text += fmt::format("{},{},{},{},{},{},{}\n", pair.rank, pair.action,
                        pair.predicted_start.value, pair.predicted.value, pair.measured_start.value,
                        pair.measured.value, pair.error().value);
  return text;
}

std::string actions_table(const ActionComparison& comparison, std::size_t most) {
  std::vector<ActionPair> worst = comparison.pairs;
  std::stable_sort(worst.begin(), worst.end(), [](const ActionPair& a, const ActionPair& b) {
    return std::abs(a.error().value) > std::abs(b.error().value);
  });
  worst.resize(std::min(most, worst.size()));
  std::string text = "largest errors  rank  predicted ms  measured ms  error ms\n";
  for (const ActionPair& pair : worst)
    text += fmt::format("{:<14}  {:<4}  {:12.3f} {:12.3f} {:+9.3f}\n", pair.action, pair.rank,
                        1e3 * pair.predicted.value, 1e3 * pair.measured.value,
                        1e3 * pair.error().value);
  const auto add = [&](const char* side, const std::vector<std::string>& names) {
    if (!names.empty())
      text += fmt::format("only {}: {}{}\n", side, names.front(),
                          names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "");
  };
  add("predicted", comparison.only_predicted);
  add("measured", comparison.only_measured);
  return text;
}

}  // namespace pipewright::loop
