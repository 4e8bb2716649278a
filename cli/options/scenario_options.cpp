#include "options/scenario_options.hpp"

#include <filesystem>

#include "pipewright/models/trainers/trainer_file.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::cli {
namespace {

/// Appends all fields of a scenario, such as "pipeline.ranks=", for shell completion.
void add_fields(const plan::Json& object, const std::string& prefix,
                std::vector<std::string>& fields) {
  for (const auto& [key, value] : object.items())
    if (value.is_object())
      add_fields(value, prefix + key + ".", fields);
    else
      fields.push_back(prefix + key + "=");
}

std::vector<std::string> scenario_fields() {
  std::vector<std::string> fields;
  const plan::Scenario plain;
  for (const char* part : {"model", "cluster", "pipeline", "training", "profile"})
    add_fields(to_json(plain).at(part), std::string(part) + ".", fields);
  return fields;
}

}  // namespace

std::vector<Option> with_scenario(ScenarioOptions& options, std::vector<Option> others) {
  std::vector<Option> all{
      {.names = "scenario",
       .target = &options.file,
       .help = "The scenario file",
       .value = "SCENARIO",
       .required = true},
      {.names = "--set",
       .target = &options.assignments,
       .help = "Override a field of the scenario by its name in the file, such as "
               "pipeline.ranks=4; may be repeated",
       .value = "FIELD=VALUE",
       .suggestions = scenario_fields(),
       .repeated = true},
      {.names = "--data",
       .target = &options.data_path,
       .help = "Train on this file or folder instead of the scenario's data",
       .value = "PATH"},
      {.names = "--cluster",
       .target = &options.cluster,
       .help = "Use the machines and links of this file, such as the output of profile --links, "
               "instead of the scenario's",
       .value = "FILE"},
      {.names = "--schedule",
       .target = &options.schedule,
       .help = "Use the order of actions in this file instead of the scenario's schedule: torch's "
               "CSV, with or without communication, or a Program (program.json of a run)",
       .value = "FILE"},
      {.names = "--cut",
       .target = &options.cut,
       .help =
           "Use the parallelism and the microbatches of this file instead of the scenario's: "
           "Megatron-LM's arguments, torchtitan's Python (FILE.py or FILE.py:FUNCTION) or TOML, "
           "or DeepSpeed's JSON",
       .value = "FILE"},
      {.names = "--json",
       .target = &options.json,
       .help = "Print one JSON document instead of a table"},
  };
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

plan::JsonDocument read_document(const ScenarioOptions& options) {
  auto document = plan::JsonDocument::read(options.file);
  if (!options.cluster.empty())
    put_cluster(document, options.cluster);
  else if (const auto own = plan::cluster_file(document))
    put_cluster(document, *own);
  if (!options.schedule.empty()) {
    const auto file = std::filesystem::absolute(options.schedule).lexically_normal();
    document.set("pipeline.schedule=" + plan::Json(file.string()).dump());
  }
  if (!options.cut.empty())
    for (const std::string& assignment :
         models::read_assignments(options.cut, models::cut_context(document, options.assignments)))
      document.set(assignment);
  return document;
}

plan::Scenario read_scenario(const ScenarioOptions& options) {
  auto document = read_document(options);
  for (const std::string& assignment : options.assignments)
    document.set(assignment);
  plan::Scenario scenario = plan::scenario_from_json(document);
  if (!options.data_path.empty())
    scenario.data.path = std::filesystem::absolute(options.data_path);
  return scenario;
}

}  // namespace pipewright::cli
