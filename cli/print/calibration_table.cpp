#include "print/calibration_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "pipewright/search/calibration/prediction_error.hpp"

namespace pipewright::cli {
namespace {

constexpr std::size_t shown_worst = 10;

enum class Kind { Classes, Physics };

double seconds_of(const search::PredictedRun& predicted, Kind kind) {
  return kind == Kind::Physics ? predicted.physics_s : predicted.iteration_s;
}

/// Returns the errors of the runs whose time is known and predicted.
std::vector<search::RunError> errors_of(const std::vector<models::MeasuredRun>& runs,
                                        const std::vector<search::Forecast>& forecasts, Kind kind) {
  std::vector<search::RunError> errors;
  for (std::size_t at = 0; at < runs.size(); ++at)
    if (const auto& time = forecasts[at].time; time && runs[at].iteration)
      errors.push_back({.run = &runs[at],
                        .predicted_s = seconds_of(*time, kind),
                        .measured_s = runs[at].iteration->value});
  return errors;
}

/// Returns the errors of memory peaks, in bytes; empty if none was measured.
std::vector<search::RunError> memory_errors_of(const std::vector<models::MeasuredRun>& runs,
                                               const std::vector<search::Forecast>& forecasts) {
  std::vector<search::RunError> errors;
  for (std::size_t at = 0; at < runs.size(); ++at)
    if (forecasts[at].memory_refused.empty() && runs[at].peak_memory)
      errors.push_back({.run = &runs[at],
                        .predicted_s = forecasts[at].ranks[forecasts[at].read].peak_bytes,
                        .measured_s = static_cast<double>(runs[at].peak_memory->value)});
  return errors;
}

/// Returns the errors of the memory that the allocator reserves.
std::vector<search::RunError> reserved_errors_of(const CalibrationReport& report) {
  std::vector<search::RunError> errors;
  for (std::size_t at = 0; at < report.memory.size(); ++at)
    if (const auto& measured = report.runs[at].reserved_memory;
        measured && report.memory[at] && report.memory[at]->left_out.empty())
      errors.push_back({.run = &report.runs[at],
                        .predicted_s = static_cast<double>(report.memory[at]->reserved.value),
                        .measured_s = static_cast<double>(measured->value)});
  return errors;
}

/// Removes the ranking figures, which are meaningless for memory.
search::PredictionError without_order(search::PredictionError error) {
  error.regret = error.spearman = std::nullopt;
  return error;
}

std::vector<search::RunError> worst_first(std::vector<search::RunError> errors) {
  std::stable_sort(errors.begin(), errors.end(),
                   [](const search::RunError& a, const search::RunError& b) {
                     return std::abs(a.error()) > std::abs(b.error());
                   });
  errors.resize(std::min(errors.size(), shown_worst));
  return errors;
}

/// Returns the error over all splits; regret and correlation are means over the splits.
search::PredictionError across(const CalibrationReport& report, Kind kind) {
  std::vector<search::RunError> all;
  double regret = 0, spearman = 0;
  int groups = 0;
  for (const auto& predicted : report.across_halves) {
    const auto errors = errors_of(report.learnt_runs, predicted, kind);
    all.insert(all.end(), errors.begin(), errors.end());
    const search::PredictionError own = search::error_of(errors);
    regret += own.regret.value_or(0), spearman += own.spearman.value_or(0), groups = own.groups;
  }
  search::PredictionError answer = search::error_of(all);
  const auto splits = static_cast<double>(report.across_halves.size());
  answer.groups = groups;
  answer.regret = groups > 0 ? std::optional(regret / splits) : std::nullopt;
  answer.spearman = groups > 0 ? std::optional(spearman / splits) : std::nullopt;
  return answer;
}

/// Returns the error of memory peaks predicted from the other halves.
search::PredictionError memory_across(const CalibrationReport& report) {
  std::vector<search::RunError> all;
  for (const auto& predicted : report.across_halves) {
    const auto errors = memory_errors_of(report.learnt_runs, predicted);
    all.insert(all.end(), errors.begin(), errors.end());
  }
  return without_order(search::error_of(all));
}

plan::Json constants_json(const search::Calibration& calibration) {
  plan::Json constants = plan::Json::object();
  for (const search::FittedConstant& constant : calibration.constants)
    constants[constant.key] = {{"value", constant.value},
                               {"uncertainty_percent", 100 * std::expm1(constant.deviation)},
                               {"prior", constant.prior},
                               {"fitted", constant.matters},
                               {"at_bound", constant.at_bound}};
  return constants;
}

plan::Json run_json(const search::RunError& error) {
  const models::MeasuredRun& run = *error.run;
  return {{"id", run.id},
          {"line", run.line},
          {"predicted_s", error.predicted_s},
          {"measured_s", error.measured_s},
          {"error_percent", 100 * error.error()}};
}

std::string error_line(const std::string& name, const search::PredictionError& error) {
  const auto maybe = [](const std::optional<double>& value, double unit) {
    return value ? fmt::format("{:.2f}", *value * unit) : std::string("-");
  };
  return fmt::format("{:<34}  {:>5}  {:>6.2f}  {:>6.2f}  {:>6.2f}  {:>6.1f}  {:>6}  {:>8}\n", name,
                     error.rows, 100 * error.mean, 100 * error.median, 100 * error.p90,
                     100 * error.worst, maybe(error.regret, 100), maybe(error.spearman, 1));
}

std::string constants_table(const search::Calibration& calibration) {
  std::string text =
      fmt::format("{:<22}  {:>12}  {:>11}  {:>12}\n", "constant", "value", "uncertainty", "before");
  for (const search::FittedConstant& constant : calibration.constants)
    text += fmt::format("{:<22}  {:>12.4g}  {:>9.1f} %  {:>12.4g}{}\n", constant.key,
                        constant.value, 100 * std::expm1(constant.deviation), constant.prior,
                        constant.at_bound  ? "  at its bound"
                        : constant.matters ? ""
                                           : "  not used by these runs");
  return text;
}

std::string worst_table(const std::vector<search::RunError>& errors) {
  std::string text =
      fmt::format("{:<12}  {:>4}  {:>4}  {:>4}  {:>4}  {:>11}  {:>10}  {:>8}\n", "worst", "tp",
                  "dp", "pp", "mb", "predicted s", "measured s", "error %");
  for (const search::RunError& error : worst_first(errors)) {
    const models::MeasuredRun& run = *error.run;
    text += fmt::format("{:<12}  {:>4}  {:>4}  {:>4}  {:>4}  {:>11.4f}  {:>10.4f}  {:>+8.1f}\n",
                        run.id, run.cut.tensor, run.cut.data, run.cut.pipeline, run.cut.microbatch,
                        error.predicted_s, error.measured_s, 100 * error.error());
  }
  return text;
}

std::string unmeasured_table(const CalibrationReport& report, Kind kind) {
  std::string text;
  for (std::size_t at = 0; at < report.runs.size(); ++at)
    if (const auto& time = report.forecasts[at].time; time && !report.runs[at].iteration)
      text += fmt::format("{:<12}  {:>11.4f} s\n", report.runs[at].id, seconds_of(*time, kind));
  return text.empty() ? text : "\npredicted\n" + text;
}

double gib(plan::Bytes bytes) { return static_cast<double>(bytes.value) / 0x1p30; }

std::string memory_table(const CalibrationReport& report) {
  const plan::Bytes device = report.calibration.cluster.device.memory;
  std::string text;
  for (std::size_t at = 0; at < report.memory.size(); ++at)
    if (const auto& own = report.memory[at])
      text += fmt::format("{:<12}  {:>7.2f}  {:>7.2f}  {:>10.2f}  {:>7.2f}  {}\n",
                          report.runs[at].id, gib(own->total()), gib(own->allocated),
                          gib(own->fragmentation()), gib(own->context + own->communicators),
                          device == plan::Bytes{}  ? ""
                          : own->total() <= device ? "fits"
                                                   : "does not fit");
  return text.empty() ? text
                      : fmt::format("\n{:<12}  {:>7}  {:>7}  {:>10}  {:>7}\n", "memory, GiB",
                                    "total", "tensors", "fragmented", "other") +
                            text;
}

std::string refused_table(const CalibrationReport& report) {
  std::string text;
  for (const Refusal& refusal : report.refused)
    text += fmt::format("line {:<4}  {:<8}  {}\n", refusal.line, refusal.part, refusal.reason);
  return text.empty() ? text : "\nrefused\n" + text;
}

std::string learnt_text(const CalibrationReport& report) {
  const auto& calibration = report.calibration;
  return constants_table(calibration) +
         fmt::format(
             "\nassumed recomputation if runs do not say it: {} within a node, {} on several "
             "nodes\n",
             to_string(calibration.within_node), to_string(calibration.between_nodes)) +
         fmt::format("classes of layers: {}\n\n",
                     calibration.class_spread > 0
                         ? fmt::format("{} measured", calibration.cluster.machine->layers.size())
                         : "not used: the physics alone predicts as well");
}

plan::Json refused_json(const std::vector<Refusal>& refused) {
  plan::Json json = plan::Json::array();
  for (const Refusal& refusal : refused)
    json.push_back({{"id", refusal.id},
                    {"line", refusal.line},
                    {"part", refusal.part},
                    {"reason", refusal.reason}});
  return json;
}

/// Returns the error of a rank's memory peak.
plan::Json memory_error_json(const search::RunError& error) {
  return {{"id", error.run->id},
          {"line", error.run->line},
          {"predicted_bytes", error.predicted_s},
          {"measured_bytes", error.measured_s},
          {"error_percent", 100 * error.error()}};
}

plan::Json with_worst(plan::Json json, const std::vector<search::RunError>& errors,
                      plan::Json (*shown)(const search::RunError&)) {
  json["worst"] = plan::Json::array();
  for (const search::RunError& error : worst_first(errors))
    json["worst"].push_back(shown(error));
  return json;
}

plan::Json rank_json(std::size_t rank, const search::RankForecast& own) {
  plan::Json json{{"rank", rank}, {"peak_bytes", own.peak_bytes}};
  if (own.allocated_bytes)
    json["allocated_bytes"] = *own.allocated_bytes;
  return json;
}

plan::Json forecast_json(const models::MeasuredRun& run, const search::Forecast& own, Kind kind) {
  plan::Json json{{"id", run.id}, {"line", run.line}};
  if (own.time) {
    json["predicted_s"] = seconds_of(*own.time, kind);
    json["physics_s"] = own.time->physics_s;
    json["class_known"] = own.time->class_known;
  }
  if (!own.memory_refused.empty())
    return json;
  json["memory_rank"] = own.read;
  json["peak_bytes"] = own.ranks[own.read].peak_bytes;
  if (const auto allocated = own.ranks[own.read].allocated_bytes)
    json["allocated_bytes"] = *allocated;
  for (const models::Holder& holder : own.ranks[own.read].at_peak)
    json["at_peak"][holder.name] = holder.bytes.value;
  json["ranks"] = plan::Json::array();
  for (std::size_t rank = 0; rank < own.ranks.size(); ++rank)
    json["ranks"].push_back(rank_json(rank, own.ranks[rank]));
  return json;
}

}  // namespace

std::string calibration_table(const CalibrationReport& report) {
  const Kind kind = report.physics_only ? Kind::Physics : Kind::Classes;
  std::string text = report.learnt > 0 ? learnt_text(report) : std::string();
  text += fmt::format("{:<34}  {:>5}  {:>6}  {:>6}  {:>6}  {:>6}  {:>6}  {:>8}\n", "|error| %",
                      "runs", "mean", "median", "p90", "worst", "regret", "spearman");
  const std::string whose = report.learnt_from_them ? "runs learned from" : "runs predicted";
  const auto errors = errors_of(report.runs, report.forecasts, kind);
  const auto physics = errors_of(report.runs, report.forecasts, Kind::Physics);
  if (!errors.empty()) {
    if (!report.physics_only)
      text += error_line(whose, search::error_of(errors));
    text += error_line(whose + ", physics only", search::error_of(physics));
  }
  if (const auto memory = memory_errors_of(report.runs, report.forecasts); !memory.empty())
    text += error_line(whose + ", peak memory", without_order(search::error_of(memory)));
  if (const auto reserved = reserved_errors_of(report); !reserved.empty())
    text += error_line(whose + ", reserved memory", without_order(search::error_of(reserved)));
  if (!report.across_halves.empty()) {
    if (const auto memory = memory_across(report); memory.rows > 0)
      text += error_line("from other halves, peak memory", memory);
    text += error_line("from other halves", across(report, Kind::Classes));
    text += error_line("from other halves, physics only", across(report, Kind::Physics));
  }
  if (!errors.empty())
    text += "\n" + worst_table(errors);
  return text + unmeasured_table(report, kind) + memory_table(report) + refused_table(report);
}

plan::Json to_json(const CalibrationReport& report) {
  const Kind kind = report.physics_only ? Kind::Physics : Kind::Classes;
  const auto errors = errors_of(report.runs, report.forecasts, kind);
  const auto memory = memory_errors_of(report.runs, report.forecasts);
  plan::Json json = with_worst(search::to_json(search::error_of(errors)), errors, run_json);
  json["time"] = json;
  json["memory"] = with_worst(search::to_json(without_order(search::error_of(memory))), memory,
                              memory_error_json);
  json["refused"] = refused_json(report.refused);
  json["learnt_runs"] = report.learnt;
  json["ignored_columns"] = report.ignored;
  json["learnt_from_them"] = report.learnt_from_them;
  json["physics_only"] =
      search::to_json(search::error_of(errors_of(report.runs, report.forecasts, Kind::Physics)));
  if (!report.across_halves.empty()) {
    json["across_halves"] = search::to_json(across(report, Kind::Classes));
    json["across_halves"]["splits"] = report.across_halves.size();
    json["across_halves"]["physics_only"] = search::to_json(across(report, Kind::Physics));
    if (const auto peaks = memory_across(report); peaks.rows > 0)
      json["across_halves"]["peak_memory"] = search::to_json(peaks);
  }
  if (!memory.empty())
    json["peak_memory"] = search::to_json(without_order(search::error_of(memory)));
  if (const auto reserved = reserved_errors_of(report); !reserved.empty())
    json["reserved_memory"] = with_worst(search::to_json(without_order(search::error_of(reserved))),
                                         reserved, memory_error_json);
  const auto& calibration = report.calibration;
  json["recompute_within_node"] = to_string(calibration.within_node);
  json["recompute_between_nodes"] = to_string(calibration.between_nodes);
  json["classes"] = calibration.cluster.machine->layers.size();
  json["constants"] = constants_json(calibration);
  json["runs"] = plan::Json::array();
  for (std::size_t at = 0; at < report.runs.size(); ++at) {
    json["runs"].push_back(forecast_json(report.runs[at], report.forecasts[at], kind));
    if (!report.memory.empty() && report.memory[at])
      json["runs"].back()["memory"] = to_json(*report.memory[at]);
  }
  return json;
}

}  // namespace pipewright::cli
