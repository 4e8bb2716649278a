#include "pipewright/loop/compare/action_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "comparison_row.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::loop {
namespace {

/// Seconds or bytes as plain numbers.
using Numbers = std::vector<double>;

template <class Quantity>
Numbers numbers(const std::vector<Quantity>& quantities) {
  Numbers out;
  for (const Quantity quantity : quantities)
    out.push_back(static_cast<double>(quantity.value));
  return out;
}

std::optional<double> at(const Numbers& list, std::size_t rank) {
  if (rank >= list.size())
    return {};
  return list[rank];
}

/// Returns nothing for a peak of 0, which stands for a rank without memory samples.
std::optional<double> sampled(std::optional<double> peak) {
  return peak == 0.0 ? std::nullopt : peak;
}

template <class Figure>
plan::Json error_list(const Numbers& predicted, const Numbers& measured, const Figure& figure) {
  plan::Json errors = plan::Json::array();
  for (std::size_t rank = 0; rank < std::max(predicted.size(), measured.size()); ++rank) {
    const auto error = error_of(figure(at(predicted, rank)), figure(at(measured, rank)));
    errors.push_back(error ? plan::Json(*error) : plan::Json());
  }
  return errors;
}

plan::Bytes largest(const std::vector<plan::Bytes>& a, const std::vector<plan::Bytes>& b) {
  plan::Bytes most;
  for (const auto* list : {&a, &b})
    for (const plan::Bytes bytes : *list)
      most = std::max(most, bytes);
  return most;
}

bool has_shards(const StepFigures& figures) {
  return std::any_of(figures.shards.begin(), figures.shards.end(),
                     [](plan::Seconds seconds) { return seconds > plan::Seconds{}; });
}

std::size_t rank_count(const StepFigures& figures) {
  return std::max({figures.busy.size(), figures.bubble.size(), figures.peak.size()});
}

std::vector<ComparisonRow> rows_of(const StepFigures& predicted, const StepFigures& measured) {
  const plan::Seconds longest = std::max(predicted.iteration, measured.iteration);
  const Display time = display(longest.value, plan::column_unit(longest));
  const plan::Bytes most = largest(predicted.peak, measured.peak);
  const Display memory = display(static_cast<double>(most.value), plan::column_unit(most));
  const Numbers busy[] = {numbers(predicted.busy), numbers(measured.busy)};
  const Numbers bubble[] = {numbers(predicted.bubble), numbers(measured.bubble)};
  const Numbers shards[] = {numbers(predicted.shards), numbers(measured.shards)};
  const bool with_shards = has_shards(predicted) || has_shards(measured);
  const Numbers peak[] = {numbers(predicted.peak), numbers(measured.peak)};

  std::vector<ComparisonRow> rows{{"", "", "predicted", "measured", "error"}};
  rows.push_back(
      compared("iteration time", predicted.iteration.value, measured.iteration.value, time));
  const std::size_t ranks = std::max(rank_count(predicted), rank_count(measured));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto named = [rank](const char* what) { return fmt::format("rank {} {}", rank, what); };
    rows.push_back(compared(named("busy"), at(busy[0], rank), at(busy[1], rank), time));
    if (with_shards)
      rows.push_back(compared(named("shards"), at(shards[0], rank), at(shards[1], rank), time));
    rows.push_back(compared(named("bubble"), at(bubble[0], rank), at(bubble[1], rank), time));
    rows.push_back(compared(named("peak memory"), sampled(at(peak[0], rank)),
                            sampled(at(peak[1], rank)), memory));
  }
  return rows;
}

}  // namespace

StepFigures figures_of(const plan::Timeline& timeline) {
  return {.iteration = timeline.length,
          .busy = busy_per_rank(timeline),
          .bubble = bubble_per_rank(timeline),
          .peak = peak_per_rank(timeline),
          .shards = shards_per_rank(timeline)};
}

double error_percent(double predicted, double measured) {
  if (measured != 0)
    return 100 * (predicted - measured) / measured;
  return predicted == 0 ? 0 : std::numeric_limits<double>::quiet_NaN();
}

plan::Json to_json(const StepFigures& figures) {
  plan::Json peak = plan::Json::array();  // not through `numbers`: bytes are integers
  for (const plan::Bytes bytes : figures.peak)
    peak.push_back(bytes.value);
  plan::Json json{{"iteration_s", figures.iteration.value},
                  {"busy_s", numbers(figures.busy)},
                  {"bubble_s", numbers(figures.bubble)},
                  {"peak_bytes", std::move(peak)}};
  if (has_shards(figures))
    json["shards_s"] = numbers(figures.shards);
  return json;
}

plan::Json error_json(const StepFigures& predicted, const StepFigures& measured) {
  const auto errors = [](const auto& expected, const auto& found, const auto& figure) {
    return error_list(numbers(expected), numbers(found), figure);
  };
  const auto iteration = error_of(predicted.iteration.value, measured.iteration.value);
  plan::Json json{{"iteration_s", iteration ? plan::Json(*iteration) : plan::Json()},
                  {"busy_s", errors(predicted.busy, measured.busy, std::identity())},
                  {"bubble_s", errors(predicted.bubble, measured.bubble, std::identity())},
                  {"peak_bytes", errors(predicted.peak, measured.peak, sampled)}};
  if (has_shards(predicted) || has_shards(measured))
    json["shards_s"] = errors(predicted.shards, measured.shards, std::identity());
  return json;
}

std::string comparison_table(const StepFigures& predicted, const StepFigures& measured) {
  return table_of(rows_of(predicted, measured));
}

}  // namespace pipewright::loop
