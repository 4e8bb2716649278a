#include <nlohmann/json.hpp>

#include "commands/commands.hpp"
#include "exit_code.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/search/calibration/calibration.hpp"
#include "pipewright/search/calibration/prediction_error.hpp"
#include "pipewright/search/calibration/unsaid.hpp"
#include "print/calibration_table.hpp"
#include "print/console.hpp"

namespace pipewright::cli {
namespace {

struct CalibrateOptions {
  std::string cluster;
  std::string runs;
  std::string predict;
  std::string out;
  int halves = 0;
  bool physics_only = false;
  bool json = false;
};

models::RunTable read(const plan::Cluster& cluster, const std::string& file,
                      models::RunTimes times) {
  models::RunTable table = models::read_runs(std::filesystem::path(file), times);
  if (!table.ignored.empty())
    say(fmt::format("{}: unknown columns are ignored: {}", file, fmt::join(table.ignored, ", ")));
  models::set_times_by_peak(table.runs, cluster.device.flops_per_s);
  return table;
}

/// Returns the runs whose time can be predicted on the cluster; the others are added to `refused`.
std::vector<models::MeasuredRun> learnable(const plan::Cluster& cluster,
                                           const std::vector<models::MeasuredRun>& all,
                                           std::vector<Refusal>& refused) {
  std::vector<models::MeasuredRun> runs;
  for (const models::MeasuredRun& run : all)
    if (const std::string reason = search::time_refusal(cluster, run); reason.empty())
      runs.push_back(run);
    else
      refused.push_back({run.id, run.line, "learning", reason});
  return runs;
}

void add_forecasts(CalibrationReport& report, const models::RunTable& table) {
  for (const models::RefusedRow& row : table.refused)
    report.refused.push_back(
        {row.id, row.line, "row", fmt::format("{}", fmt::join(row.reasons, "; "))});
  report.runs = table.runs;
  report.forecasts = search::forecast(report.calibration, report.runs);
  for (std::size_t at = 0; at < report.runs.size(); ++at) {
    const models::MeasuredRun& run = report.runs[at];
    const search::Forecast& own = report.forecasts[at];
    if (!own.time_refused.empty())
      report.refused.push_back({run.id, run.line, "time", own.time_refused});
    if (!own.memory_refused.empty())
      report.refused.push_back({run.id, run.line, "memory", own.memory_refused});
  }
}

CalibrationReport as_it_is(const CalibrateOptions& options, const plan::Cluster& whole) {
  CalibrationReport report;
  const models::RunTable wanted = read(whole, options.predict, models::RunTimes::Optional);
  report.calibration = search::as_it_is(search::cluster_of(whole, wanted.runs));
  report.ignored = wanted.ignored;
  add_forecasts(report, wanted);
  return report;
}

CalibrationReport learnt(const CalibrateOptions& options, const plan::Cluster& whole) {
  CalibrationReport report;
  report.learnt_from_them = options.predict.empty();
  const models::RunTable runs = read(whole, options.runs, models::RunTimes::Needed);
  report.ignored = runs.ignored;
  const plan::Cluster cluster = search::cluster_of(whole, runs.runs);
  report.learnt_runs = learnable(cluster, runs.runs, report.refused);
  if (report.learnt_runs.empty())
    throw plan::InputError(
        fmt::format("{}: there is no run to learn from; the first one is rejected: {}",
                    options.runs, report.refused.front().reason));
  const plan::AttentionKind attention = search::attention_of(cluster, report.learnt_runs);
  search::set_attention(report.learnt_runs, attention);
  report.learnt = static_cast<int>(report.learnt_runs.size());
  report.calibration = search::calibrate(cluster, report.learnt_runs);
  models::RunTable wanted =
      options.predict.empty() ? runs : read(cluster, options.predict, models::RunTimes::Optional);
  search::set_attention(wanted.runs, attention);
  add_forecasts(report, wanted);
  if (options.halves > 0)
    report.across_halves =
        search::forecast_across_halves(cluster, report.learnt_runs, options.halves);
  return report;
}

/// Returns the report. Allocations are replayed only for the runs to predict, not for all runs that
/// were learned from, because a replay takes some milliseconds per run.
CalibrationReport report_of(const CalibrateOptions& options, const plan::Cluster& cluster) {
  CalibrationReport report =
      options.runs.empty() ? as_it_is(options, cluster) : learnt(options, cluster);
  report.physics_only = options.physics_only;
  if (!options.predict.empty())
    report.memory = search::memory_of_runs(report.calibration, report.runs, report.forecasts);
  return report;
}

int calibrate(const CalibrateOptions& options) {
  if (options.runs.empty() && (options.predict.empty() || options.halves > 0))
    throw plan::InputError(options.predict.empty()
                               ? "give --runs FILE to learn from, or --predict FILE"
                               : "--halves needs --runs FILE, the runs to split");
  const auto cluster = plan::cluster_from_json(plan::JsonDocument::read(options.cluster));
  const CalibrationReport report = report_of(options, cluster);
  if (!options.out.empty())
    plan::write_file(options.out, to_json(report.calibration.cluster).dump(2) + "\n");
  if (options.json)
    fmt::print("{}\n", to_json(report).dump(2));
  else
    fmt::print("{}", calibration_table(report));
  return Done;
}

Command describe(CalibrateOptions& options) {
  return {
      .name = "calibrate",
      .summary = "Fit a cluster's constants to measured runs, and predict others",
      .options = {{.names = "cluster",
                   .target = &options.cluster,
                   .help = "A cluster's JSON file, such as scenarios/clusters/a100-80gb.json",
                   .value = "CLUSTER",
                   .required = true},
                  {.names = "--runs",
                   .target = &options.runs,
                   .help = "Measured runs to learn from, a CSV file (docs/calibration.md); without "
                           "them the cluster's constants are used unchanged",
                   .value = "FILE"},
                  {.names = "--predict",
                   .target = &options.predict,
                   .help = "Runs to predict, including the memory that LibTorch's allocator "
                           "reserves; default: the runs of --runs",
                   .value = "FILE"},
                  {.names = "-o,--out",
                   .target = &options.out,
                   .help = "Write the cluster with its constants and classes of layers",
                   .value = "FILE"},
                  {.names = "--halves",
                   .target = &options.halves,
                   .help = "Split the runs randomly into halves this many times, and predict each "
                           "half from the other",
                   .value = "INT",
                   .numbers = Numbers::NotNegative},
                  {.names = "--physics-only",
                   .target = &options.physics_only,
                   .help = "Predict with the machine's constants only, without the measured times "
                           "of classes of layers"},
                  {.names = "--json", .target = &options.json, .help = "Print one JSON document"}},
      .examples =
          "Example: pipewright calibrate scenarios/clusters/a100-80gb.json --runs mine.csv "
          "--predict planned.csv -o calibrated.json"};
}

}  // namespace

Command calibrate_command() { return make_command(describe, calibrate); }

}  // namespace pipewright::cli
