#include <fmt/format.h>

#include "pipewright/plan/generators/schedule_catalog.hpp"
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
      "Microbatches of a round, or of an optimizer step, of {}; 0: the schedule's default.",
      listed_schedules([](const ScheduleDescriptor& entry) { return entry.takes_group; }));
  return meaning;
}

const std::string& memory_units_meaning() {
  static const std::string meaning = fmt::format(
      "Memory limit of a rank under {}, where a forward adds 2, and I and W free 1 each; 0: the "
      "memory of its device.",
      listed_schedules([](const ScheduleDescriptor& entry) { return entry.takes_memory_units; }));
  return meaning;
}

const std::string& placement_meaning() {
  static const std::string meaning =
      fmt::format("The rank of each stage, of {}: [0, 0, 1, 2]; empty: the schedule's default.",
                  listed_schedules(&ScheduleDescriptor::takes_placement));
  return meaning;
}

}  // namespace pipewright::plan
