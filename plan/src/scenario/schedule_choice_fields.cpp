#include <fmt/format.h>

#include "pipewright/plan/generators/schedule_catalogue.hpp"
#include "scenario_fields.hpp"

namespace pipewright::plan {

const std::string& schedule_schema() {
  static const std::string schema = Json{{"oneOf",
                                          {{{"type", "string"}, {"enum", schedule_names()}},
                                           {{"type", "string"}, {"pattern", "[./]"}}}}}
                                        .dump();
  return schema;
}

const std::string& group_meaning() {
  static const std::string meaning = fmt::format(
      "Microbatches of a round, or of an optimizer step, of {}; 0: as they have it.",
      listed_schedules([](const ScheduleDescriptor& entry) { return entry.takes_group; }));
  return meaning;
}

const std::string& memory_units_meaning() {
  static const std::string meaning = fmt::format(
      "The most that a rank may keep under {}, where a forward adds 2, I and W free 1 each; 0: "
      "what "
      "its device holds.",
      listed_schedules([](const ScheduleDescriptor& entry) { return entry.takes_memory_units; }));
  return meaning;
}

const std::string& placement_meaning() {
  static const std::string meaning =
      fmt::format("The rank of each stage, of {}: [0, 0, 1, 2]; empty: as they have it.",
                  listed_schedules(&ScheduleDescriptor::takes_placement));
  return meaning;
}

}  // namespace pipewright::plan
