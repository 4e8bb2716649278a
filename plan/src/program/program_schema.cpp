#include "pipewright/plan/program/program_schema.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "pipewright/plan/json/field_schema.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {
namespace {

/// Returns a pattern that matches any word of the kinds that `is_wanted` accepts.
template <class Wanted>
std::string word_pattern(const Wanted& is_wanted) {
  std::vector<std::string_view> words;
  for (const InstructionTraits& row : instruction_traits)
    if (is_wanted(row))
      words.push_back(row.word);
  return fmt::format("({})", fmt::join(words, "|"));
}

std::string instruction_pattern() {
  const auto of_stage = [](const InstructionTraits& row) { return !has_microbatch(row.kind); };
  const auto of_microbatch = [](const InstructionTraits& row) { return has_microbatch(row.kind); };
  const auto is_action = [](const InstructionTraits& row) { return row.action.has_value(); };
  const std::string number = "[0-9]+", place = "[0-9]+(#[0-9]+)?";
  const std::string action = number + word_pattern(is_action) + place;
  return fmt::format("^({0}{1}|{0}{2}{3}|\\({4};{4}\\)OVERLAP_F_B)$", number,
                     word_pattern(of_stage), word_pattern(of_microbatch), place, action);
}

Json array_of(Json items) { return {{"type", "array"}, {"items", std::move(items)}}; }
Json integer_from(int least) { return {{"type", "integer"}, {"minimum", least}}; }

/// Adds a field. Without a default value it is required.
void add(Json& object, const char* key, const char* meaning, const Json& type,
         const Json& fallback = nullptr) {
  Json& field = object["properties"][key] = {{"description", meaning}};
  field.update(type);
  if (fallback.is_null())
    object["required"].push_back(key);
  else
    field["default"] = fallback;
}

}  // namespace

std::string program_schema() {
  const Json flag{{"type", "boolean"}};
  Json route = array_of(integer_from(0)), routes;
  route["minItems"] = 1;
  routes = array_of(route);
  routes["minItems"] = 1;
  Json ranks = array_of(array_of({{"$ref", "#/$defs/instruction"}}));
  ranks["minItems"] = 1;

  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "Pipewright program"}};
  schema.update(object_schema(
      "Everything that each rank does in one step. The simulator times it, the executor runs it."));
  schema["properties"]["$schema"] = {{"description", "Path of this schema, for editors."},
                                     {"type", "string"}};
  add(schema, "format", "Kind and version of this file.", {{"const", "pipewright/program/2"}});
  add(schema, "microbatches", "Microbatches in one step.", integer_from(1));
  add(schema, "routes",
      "The rank of every stage, for each route of microbatches through the model. Bidirectional "
      "schedules have two routes.",
      routes);
  add(schema, "route_of_microbatch",
      "The route of each microbatch. Empty if there is only one route.", array_of(integer_from(0)));
  add(schema, "communicators",
      "Which transfers share one in-order queue: those of a directed pair of ranks, of a pair, or "
      "of a rank.",
      {{"type", "string"}, {"enum", communicator_layouts()}});
  add(schema, "transfers",
      "When a transfer may start: when both ends have reached it, or when the sender has.",
      {{"type", "string"}, {"enum", transfer_modes()}});
  add(schema, "blocking", "True if a transfer keeps its rank from computing.", flag);
  add(schema, "asynchronous",
      "True if weights are updated without a flush, so that a stage steps several times.", flag);
  add(schema, "step_every",
      "Number of backwards before a stage steps, if the Program is asynchronous; otherwise 0.",
      integer_from(0), 0);
  add(schema, "recompute_layers",
      "Number of layers that are recomputed together if the Program has R. The forward saves only "
      "the input of each such group. R recomputes the last group of the stage, and the backward "
      "recomputes the others. 0: R recomputes the whole stage.",
      integer_from(0), 0);
  add(schema, "selective_recompute",
      "True if each backward recomputes the attention of its layers.", flag, false);
  add(schema, "ranks", "The instructions of each rank, in the order in which they run.", ranks);
  schema["$defs"]["instruction"] = {{"description",
                                     "<stage><operation><microbatch>#<buffer slot>, such as "
                                     "1SEND_B2#0. An instruction of a whole "
                                     "stage, such as 0STEP, has no microbatch. Two actions that "
                                     "overlap are one instruction, such "
                                     "as (1F2#0;0B1#1)OVERLAP_F_B."},
                                    {"type", "string"},
                                    {"pattern", instruction_pattern()}};
  return schema.dump(2) + "\n";
}

}  // namespace pipewright::plan
