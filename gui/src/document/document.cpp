#include "pipewright/gui/document/document.hpp"

#include <fmt/format.h>

#include "pipewright/loop/prediction.hpp"
#include "pipewright/loop/schedule_figures.hpp"
#include "pipewright/loop/schedule_file.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/program/program_csv.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "pipewright/plan/timeline/trace.hpp"
#include "pipewright/sim/measured_times.hpp"

namespace pipewright::gui {
namespace {

namespace fs = std::filesystem;

/// Runs a part of the reading; what it throws is a problem, and the rest goes on.
template <class Part>
bool tried(Document& document, const std::string& what, Part&& part) {
  try {
    part();
    return true;
  } catch (const std::exception& error) {
    const std::string message = error.what();
    document.problems.push_back(
        what.empty() || message.starts_with(what) ? message : fmt::format("{}: {}", what, message));
    return false;
  }
}

/// A folder in which `run` or `train` has left what it has so far.
void open_run(Document& document, const fs::path& folder) {
  document.kind = Document::Kind::Run;
  const auto read = [&](const char* name, auto&& use) {
    if (fs::exists(folder / name))
      tried(document, (folder / name).string(),
            [&] { use(plan::JsonDocument::read(folder / name)); });
    else
      document.notes.push_back(fmt::format("{}: is not there", (folder / name).string()));
  };
  loop::StoredRun run;
  bool whole = true;
  const auto needed = [&](const char* name, auto&& use) {
    const std::size_t before = document.problems.size();
    if (!fs::exists(folder / name))
      document.problems.push_back(fmt::format("{}: is missing", (folder / name).string()));
    else
      read(name, use);
    whole = whole && document.problems.size() == before;
  };
  needed("scenario.json", [&](const auto& json) {
    run.scenario = plan::scenario_from_json(json);
    document.scenario = run.scenario;
  });
  needed("costs.json", [&](const auto& json) {
    run.costs = plan::layer_costs_from_json(json);
    document.costs = run.costs;
  });
  needed("partition.json",
         [&](const auto& json) { run.partition = plan::partition_from_json(json).partition; });
  needed("program.json", [&](const auto& json) {
    run.program = plan::program_from_json(json);
    plan::validate(run.program);
    document.structure = std::make_shared<sim::Structure>(run.program);
  });
  needed("predicted.trace.json", [&](const auto& json) {
    run.predicted = plan::timeline_from_trace(json);
    document.predicted = plan::table_of(run.predicted);
  });
  read("rehearsed_costs.json", [&](const auto& json) {
    run.rehearsed_costs = plan::layer_costs_from_json(json);
    document.costs = run.rehearsed_costs;
  });
  read("measured.trace.json", [&](const auto& json) {
    run.measured = plan::timeline_from_trace(json);
    document.measured = plan::table_of(*run.measured);
  });
  read("report.json", [&](const auto& json) { run.report = json.root(); });
  if (document.measured && document.structure && document.measured->idle.empty())
    tried(document, (folder / "measured.trace.json").string(), [&] {
      document.measured = plan::table_of(sim::with_idle_causes(*document.structure, *run.measured));
    });
  if (whole)
    document.run = std::move(run);
}

void open_json(Document& document, const fs::path& path) {
  const plan::JsonDocument json = plan::JsonDocument::read(path);
  const plan::Json& root = json.root();
  if (root.is_object() && root.contains("traceEvents")) {
    document.kind = Document::Kind::Timeline;
    document.measured = plan::table_of(plan::timeline_from_trace(json));
    return;
  }
  if (root.is_object() && root.contains("pipeline")) {
    document.kind = Document::Kind::Scenario;
    document.scenario = plan::scenario_from_json(json);
    const fs::path beside = path.parent_path() / "costs.json";
    if (fs::exists(beside))
      tried(document, beside.string(), [&] {
        document.costs = plan::layer_costs_from_json(plan::JsonDocument::read(beside));
      });
    return;
  }
  document.kind = Document::Kind::Program;
  plan::Program program = plan::program_from_json(json);
  plan::validate(program);
  document.structure = std::make_shared<sim::Structure>(std::move(program));
}

}  // namespace

Document open_document(const fs::path& path) {
  Document document;
  document.path = path;
  document.title =
      path.filename().empty() ? path.parent_path().filename().string() : path.filename().string();
  tried(document, path.string(), [&] {
    if (!fs::exists(path))
      throw plan::InputError("there is no such file or folder");
    if (fs::is_directory(path))
      open_run(document, path);
    else
      open_json(document, path);
  });
  return document;
}

}  // namespace pipewright::gui
