// How far off the iteration of a training was predicted, and where the error lies: in what the
// layers took, in what lies between an action and the next, or in transfers and waiting. Reads the
// folders that `pipewright train --out` leaves. One JSON line each; bench/links.sh makes a table.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "pipewright/loop/run_directory.hpp"
#include "pipewright/loop_torch/explained_error.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/comparison.hpp"

namespace {

using namespace pipewright;

plan::Json errors_of(const std::filesystem::path& folder) {
  loop::StoredRun run = loop::read_run(folder);
  // As it was cut, though other costs may lie in the folder now.
  run.scenario.pipeline.partition = run.partition.boundaries;
  const loop::Plan plan = loop::make_plan(run.scenario, run.costs);
  const plan::Timeline& measured = run.measured.value();
  const plan::Seconds took = plan::figures_of(measured).iteration;
  const plan::Seconds predicted = plan::figures_of(plan.predicted).iteration;
  const loop::ErrorParts parts = loop::explain(plan, std::vector{measured}, predicted, took);
  return {{"folder", folder.string()},
          {"schedule", run.scenario.pipeline.schedule},
          {"replicas", run.scenario.pipeline.replicas},
          {"measured_s", took.value},
          {"predicted_s", predicted.value},
          {"layers_s", parts.layers.value},
          {"launch_s", parts.launch.value},
          {"transfers_s", parts.waiting.value}};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> folders;
  CLI::App program("Splits the error of predicted iterations; one JSON line per folder.");
  program.add_option("folders", folders, "As `pipewright train --out` leaves them")->required();
  CLI11_PARSE(program, argc, argv);
  try {
    for (const std::string& folder : folders)
      fmt::print("{}\n", errors_of(folder).dump());
  } catch (const plan::InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
