#include "pipewright/search/calibration/prediction_error.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "pipewright/plan/statistics.hpp"

namespace pipewright::search {
namespace {

constexpr std::size_t least_runs_of_group = 4;

using Group = std::vector<RunError>;

std::vector<Group> groups_of(const std::vector<RunError>& errors) {
  std::map<std::tuple<std::string, int, int, int, int, int, int>, Group> groups;
  for (const RunError& error : errors) {
    const models::MeasuredRun& run = *error.run;
    const plan::TransformerConfig& model = run.training.model;
    groups[{model.name, model.layers, model.hidden, model.heads, run.training.sequence,
            run.cut.devices(), run.training.batch}]
        .push_back(error);
  }
  std::vector<Group> large;
  for (auto& [key, group] : groups)
    if (group.size() >= least_runs_of_group)
      large.push_back(std::move(group));
  return large;
}

double regret_of(const Group& group) {
  const auto chosen = std::min_element(
      group.begin(), group.end(),
      [](const RunError& a, const RunError& b) { return a.predicted_s < b.predicted_s; });
  const auto best = std::min_element(
      group.begin(), group.end(),
      [](const RunError& a, const RunError& b) { return a.measured_s < b.measured_s; });
  return chosen->measured_s / best->measured_s - 1;
}

/// Returns ranks from 1; equal values share their mean rank.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]])
      ++end;
    for (std::size_t at = begin; at < end; ++at)
      ranks[order[at]] = 0.5 * static_cast<double>(begin + end + 1);
  }
  return ranks;
}

/// Returns Spearman's rank correlation; 1 if all measured or all predicted values are equal.
double rank_correlation(const Group& group) {
  std::vector<double> predicted, measured;
  for (const RunError& error : group) {
    predicted.push_back(error.predicted_s);
    measured.push_back(error.measured_s);
  }
  predicted = ranks_of(predicted), measured = ranks_of(measured);
  const double mean = (static_cast<double>(group.size()) + 1) / 2;
  double both = 0, own = 0, other = 0;
  for (std::size_t at = 0; at < group.size(); ++at) {
    const double p = predicted[at] - mean, m = measured[at] - mean;
    both += p * m, own += p * p, other += m * m;
  }
  return own == 0 || other == 0 ? 1 : both / std::sqrt(own * other);
}

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * (static_cast<double>(sorted.size()) - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double mean_over(const std::vector<Group>& groups, double (*of)(const Group&)) {
  double sum = 0;
  for (const Group& group : groups)
    sum += of(group);
  return sum / static_cast<double>(groups.size());
}

}  // namespace

PredictionError error_of(const std::vector<RunError>& errors) {
  PredictionError answer{.rows = static_cast<int>(errors.size()), .regret = {}, .spearman = {}};
  if (errors.empty())
    return answer;
  std::vector<double> sizes;
  for (const RunError& error : errors)
    sizes.push_back(std::abs(error.error()));
  std::sort(sizes.begin(), sizes.end());
  answer.mean =
      std::accumulate(sizes.begin(), sizes.end(), 0.0) / static_cast<double>(sizes.size());
  answer.median = quantile(sizes, 0.5);
  answer.p90 = quantile(sizes, 0.9);
  answer.worst = sizes.back();
  const auto groups = groups_of(errors);
  answer.groups = static_cast<int>(groups.size());
  if (groups.empty())
    return answer;
  answer.regret = mean_over(groups, regret_of);
  answer.spearman = mean_over(groups, rank_correlation);
  return answer;
}

plan::Json to_json(const PredictionError& error) {
  const auto maybe = [](const std::optional<double>& value, double unit) {
    return value ? plan::Json(*value * unit) : plan::Json();
  };
  return {{"rows", error.rows},
          {"mean_abs_error_percent", 100 * error.mean},
          {"median_abs_error_percent", 100 * error.median},
          {"p90_abs_error_percent", 100 * error.p90},
          {"worst_percent", 100 * error.worst},
          {"regret_percent", maybe(error.regret, 100)},
          {"spearman", maybe(error.spearman, 1)},
          {"groups", error.groups}};
}

}  // namespace pipewright::search
