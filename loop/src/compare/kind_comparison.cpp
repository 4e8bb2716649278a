#include "pipewright/loop/compare/kind_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "comparison_row.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/timeline_transfers.hpp"

namespace pipewright::loop {
namespace {

/// The times of one kind in both timelines; nothing for a timeline that lacks the kind.
struct KindPair {
  std::string kind;
  std::optional<KindTime> predicted, measured;
};

std::optional<KindTime> find(const KindTimes& times, const std::string& kind) {
  const auto found = times.find(kind);
  return found == times.end() ? std::nullopt : std::optional(found->second);
}

std::vector<KindPair> paired(const KindTimes& predicted, const KindTimes& measured) {
  std::set<std::string> kinds;
  for (const KindTimes* const side : {&predicted, &measured})
    for (const auto& [kind, time] : *side)
      kinds.insert(kind);
  std::vector<KindPair> pairs;
  pairs.reserve(kinds.size());
  for (const std::string& kind : kinds)
    pairs.push_back({kind, find(predicted, kind), find(measured, kind)});
  return pairs;
}

std::optional<double> mean(const std::optional<KindTime>& time) {
  return time ? std::optional(time->mean().value) : std::nullopt;
}

template <class Number>
plan::Json or_null(const std::optional<Number>& number) {
  return number ? plan::Json(*number) : plan::Json();
}

std::optional<int> count(const std::optional<KindTime>& time) {
  return time ? std::optional(time->count) : std::nullopt;
}

/// Returns both counts if they differ, and otherwise the one that they share.
std::string count_cell(const KindPair& pair) {
  const auto text = [](const std::optional<KindTime>& time) {
    return time ? std::to_string(time->count) : "-";
  };
  const std::string predicted = text(pair.predicted), measured = text(pair.measured);
  return predicted == measured ? predicted : predicted + " / " + measured;
}

}  // namespace

KindTimes time_per_kind(const plan::Timeline& timeline) {
  KindTimes times;
  const auto add = [&](const std::string& kind, plan::Seconds time) {
    ++times[kind].count;
    times[kind].total += std::max(time, plan::Seconds{});  // a clock may have stepped back
  };
  for (const plan::Span& span : timeline.spans)
    if (span.row == plan::Row::Compute || span.row == plan::Row::Reduce)
      add(plan::kind_of(span.action), span.end - span.start);
  for (const plan::TransferSplit& transfer : split_transfers(timeline)) {
    const std::string kind = plan::kind_of(transfer.action);
    add(kind + " waiting", transfer.waiting);
    add(kind + " moving", transfer.moving);
  }
  return times;
}

plan::Json kinds_json(const KindTimes& predicted, const KindTimes& measured) {
  plan::Json kinds = plan::Json::object();
  for (const KindPair& pair : paired(predicted, measured)) {
    const auto expected = mean(pair.predicted), seen = mean(pair.measured);
    kinds[pair.kind] = {{"predicted_count", or_null(count(pair.predicted))},
                        {"measured_count", or_null(count(pair.measured))},
                        {"predicted_s", or_null(expected)},
                        {"measured_s", or_null(seen)},
                        {"error_percent", or_null(error_of(expected, seen))}};
  }
  return kinds;
}

std::string kind_table(const KindTimes& predicted, const KindTimes& measured) {
  std::vector<ComparisonRow> rows{{"mean of", "count", "predicted", "measured", "error"}};
  for (const KindPair& pair : paired(predicted, measured)) {
    const auto expected = mean(pair.predicted), seen = mean(pair.measured);
    const double largest = std::max(expected.value_or(0), seen.value_or(0));
    rows.push_back(compared(pair.kind, expected, seen, display(largest, {1e-3, "ms"})));
    rows.back().count = count_cell(pair);
  }
  return table_of(rows);
}

}  // namespace pipewright::loop
