#include "commands.hpp"

namespace pipewright::cli {

void add_scenario_options(CLI::App& command, ScenarioOptions& options) {
  command.add_option("scenario", options.file, "The scenario file")->required();
  command
      .add_option("--set", options.assignments,
                  "Override a field of the scenario by its name in the file, such as "
                  "pipeline.ranks=4; may be repeated")
      ->type_name("FIELD=VALUE")
      ->allow_extra_args(false);
  command.add_option("--data", options.data_path, "Train on this file (or folder) instead")
      ->type_name("PATH");
  command.add_flag("--json", options.json, "Print one JSON document instead of a table");
}

}  // namespace pipewright::cli
