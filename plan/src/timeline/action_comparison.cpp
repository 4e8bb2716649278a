#include "pipewright/plan/timeline/action_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::plan {
namespace {

/// By rank, action, and how many of that name came before it.
using Name = std::tuple<int, std::string, int>;

std::map<Name, const Span*> named_spans(const Timeline& timeline) {
  std::vector<const Span*> spans;
  for (const Span& span : timeline.spans)
    if (span.row != Row::Send)
      spans.push_back(&span);
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span* a, const Span* b) { return a->start < b->start; });
  std::map<std::pair<int, std::string>, int> counts;
  std::map<Name, const Span*> named;
  for (const Span* span : spans)
    named[{span->rank, span->action, counts[{span->rank, span->action}]++}] = span;
  return named;
}

std::string in_words(const Name& name) {
  return fmt::format("rank {}, {}", std::get<0>(name), std::get<1>(name));
}

/// By cause, of one rank or of all.
std::vector<Seconds> idle_of(const Timeline& timeline, int rank) {
  std::vector<Seconds> idle(idle_causes().size());
  for (const IdleSpan& span : timeline.idle)
    if (rank < 0 || span.rank == rank)
      idle[static_cast<std::size_t>(span.cause)] += span.end - span.start;
  return idle;
}

Json by_cause(const std::vector<Seconds>& idle) {
  Json json = Json::object();
  for (std::size_t cause = 0; cause < idle.size(); ++cause)
    json[idle_causes()[cause]] = idle[cause].value;
  return json;
}

}  // namespace

ActionComparison compare_actions(const Timeline& predicted, const Timeline& measured) {
  const auto expected = named_spans(predicted), seen = named_spans(measured);
  ActionComparison comparison;
  for (const auto& [name, span] : expected) {
    const auto found = seen.find(name);
    if (found == seen.end()) {
      comparison.only_predicted.push_back(in_words(name));
      continue;
    }
    const Span& own = *found->second;
    comparison.pairs.push_back({.rank = span->rank,
                                .action = span->action,
                                .predicted_start = span->start,
                                .predicted = span->end - span->start,
                                .measured_start = own.start,
                                .measured = own.end - own.start});
  }
  for (const auto& [name, span] : seen)
    if (!expected.contains(name))
      comparison.only_measured.push_back(in_words(name));
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

Json idle_json(const Timeline& predicted, const Timeline& measured) {
  Json ranks = Json::array();
  if (predicted.idle.empty() || measured.idle.empty())
    return ranks;
  for (int rank = 0; rank < predicted.ranks; ++rank)
    ranks.push_back({{"predicted", by_cause(idle_of(predicted, rank))},
                     {"measured", by_cause(idle_of(measured, rank))}});
  return ranks;
}

std::string idle_line(const Timeline& predicted, const Timeline& measured) {
  if (predicted.idle.empty() || measured.idle.empty())
    return "";
  const auto expected = idle_of(predicted, -1), seen = idle_of(measured, -1);
  std::string text;
  for (std::size_t cause = 0; cause < expected.size(); ++cause)
    if (expected[cause].value > 0 || seen[cause].value > 0)
      text +=
          fmt::format("{}{} {:.1f} (predicted {:.1f})", text.empty() ? "" : ", ",
                      idle_causes()[cause], 1e3 * seen[cause].value, 1e3 * expected[cause].value);
  return fmt::format("idle, all ranks, ms: {}\n", text.empty() ? "none" : text);
}

}  // namespace pipewright::plan
