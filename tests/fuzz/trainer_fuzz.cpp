// Files of other trainers: an accepted file gives assignments to existing fields of a scenario, and
// these make a scenario or are rejected with a message.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "pipewright/models/trainers/trainer_file.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "promise.hpp"
#include "reader.hpp"

namespace trainer_fuzz {

using namespace pipewright::plan;
using namespace pipewright::models;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;
using pipewright::fuzz::may_be_refused;

void set_all(const std::vector<std::string>& assignments) {
  static const Json plain = to_json(Scenario{});
  auto document = JsonDocument::parse(plain.dump(), "plain");
  for (const std::string& assignment : assignments) {
    const std::string field = assignment.substr(0, assignment.find('='));
    const std::size_t dot = field.find('.');
    demand(dot != field.npos && plain.at(field.substr(0, dot)).contains(field.substr(dot + 1)),
           "a scenario has the field");
    document.set(assignment);
  }
  may_be_refused([&] { scenario_from_json(document); });
}

void try_text(std::string_view text) {
  for (const std::string& trainer : trainers())
    if (const auto assignments = accepted([&] {
          return assignments_of(trainer_of(trainer), text, "fuzz",
                                {.replicas = 2, .blocks = 6, .units = 0, .function = "plan"});
        }))
      set_all(*assignments);
}

const pipewright::fuzz::Reader reader("trainer", try_text);

}  // namespace trainer_fuzz
