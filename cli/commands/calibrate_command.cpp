#include <nlohmann/json.hpp>

#include "commands/commands.hpp"
#include "exit_code.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/sim/calibration/calibration.hpp"
#include "pipewright/sim/calibration/prediction_error.hpp"
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

plan::RunTable read(const std::string& file, plan::RunTimes times) {
  plan::RunTable table = plan::read_runs(std::filesystem::path(file), times);
  if (!table.ignored.empty())
    say(fmt::format("{}: columns that are not known and ignored: {}", file,
                    fmt::join(table.ignored, ", ")));
  return table;
}

int calibrate(const CalibrateOptions& options) {
  const auto cluster = plan::cluster_from_json(plan::JsonDocument::read(options.cluster));
  const plan::RunTable runs = read(options.runs, plan::RunTimes::Needed);
  const plan::RunTable wanted =
      options.predict.empty() ? runs : read(options.predict, plan::RunTimes::Optional);
  CalibrationReport report{.calibration = sim::calibrate(cluster, runs.runs),
                           .learnt = static_cast<int>(runs.runs.size()),
                           .learnt_from_them = options.predict.empty(),
                           .physics_only = options.physics_only,
                           .ignored = runs.ignored,
                           .runs = wanted.runs,
                           .predicted = {},
                           .learnt_runs = runs.runs,
                           .across_halves = {}};
  report.predicted = sim::predict_runs(report.calibration, report.runs);
  if (options.halves > 0)
    report.across_halves = sim::predict_across_halves(cluster, runs.runs, options.halves);
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
                   .help = "Measured runs to learn from, a CSV file (docs/calibration.md)",
                   .value = "FILE",
                   .required = true},
                  {.names = "--predict",
                   .target = &options.predict,
                   .help = "Runs to predict; those that were learnt from unless given",
                   .value = "FILE"},
                  {.names = "-o,--out",
                   .target = &options.out,
                   .help = "Write the cluster with its constants and classes of layers",
                   .value = "FILE"},
                  {.names = "--halves",
                   .target = &options.halves,
                   .help = "So many times, split the runs in random halves and predict each "
                           "from the other",
                   .value = "INT",
                   .numbers = Numbers::NotNegative},
                  {.names = "--physics-only",
                   .target = &options.physics_only,
                   .help = "Predict with the machine's constants alone, without the times of "
                           "classes of layers that were measured"},
                  {.names = "--json", .target = &options.json, .help = "Print one JSON document"}},
      .examples =
          "Example: pipewright calibrate scenarios/clusters/a100-80gb.json --runs mine.csv "
          "--predict planned.csv -o calibrated.json"};
}

}  // namespace

Command calibrate_command() { return make_command(describe, calibrate); }

}  // namespace pipewright::cli
