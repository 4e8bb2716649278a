#include "pipewright/plan/program/program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/fused_cell.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/program/validate_program.hpp"

namespace pipewright::plan {

const std::vector<std::string>& communicator_layouts() {
  static const std::vector<std::string> names{"edge", "pair", "rank"};
  return names;
}

const std::vector<std::string>& transfer_modes() {
  static const std::vector<std::string> names{"rendezvous", "eager"};
  return names;
}

std::string to_string(CommunicatorLayout layout) {
  return communicator_layouts()[static_cast<std::size_t>(layout)];
}

std::string to_string(TransferMode mode) {
  return transfer_modes()[static_cast<std::size_t>(mode)];
}

namespace {

std::size_t index_in(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw InputError(fmt::format("\"{}\" is not known here{} (possible: {})", name,
                                 did_you_mean(name, names), listed(names)));
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace

CommunicatorLayout parse_communicator_layout(const std::string& name) {
  return static_cast<CommunicatorLayout>(index_in(communicator_layouts(), name));
}

TransferMode parse_transfer_mode(const std::string& name) {
  return static_cast<TransferMode>(index_in(transfer_modes(), name));
}

Json to_json(const Program& program) {
  Json ranks = Json::array();
  for (const auto& instructions : program.ranks) {
    Json row = Json::array();
    for (std::size_t at = 0; at < instructions.size(); ++at)
      if (instructions[at].fused_with_next && at + 1 < instructions.size()) {
        row.push_back(fused_cell(with_slot(instructions[at]), with_slot(instructions[at + 1])));
        ++at;
      } else {
        row.push_back(with_slot(instructions[at]));
      }
    ranks.push_back(std::move(row));
  }
  return {{"format", "pipewright/program/2"},
          {"microbatches", program.microbatches},
          {"routes", program.placement.routes},
          {"route_of_microbatch", program.placement.route_of_microbatch},
          {"communicators", to_string(program.communicators)},
          {"transfers", to_string(program.transfers)},
          {"blocking", program.blocking},
          {"asynchronous", program.asynchronous},
          {"step_every", program.step_every},
          {"recompute_layers", program.recompute_layers},
          {"selective_recompute", program.selective_recompute},
          {"ranks", std::move(ranks)}};
}

namespace {

std::vector<Instruction> read_instructions(JsonObject& root, const std::string& pointer) {
  std::vector<Instruction> instructions;
  Diagnostics& diagnostics = root.diagnostics();
  const Json& row = diagnostics.document().root().at(Json::json_pointer(pointer));
  if (!row.is_array()) {
    diagnostics.add(pointer, "a list of instructions is needed here");
    return instructions;
  }
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto text = row[i].is_string() ? row[i].get<std::string>() : row[i].dump();
    if (!append_cell(text, instructions))
      diagnostics.add(fmt::format("{}/{}", pointer, i),
                      fmt::format("\"{}\" is not an instruction, such as \"0F2#1\"", text));
  }
  return instructions;
}

Placement read_placement(JsonObject& root, int microbatches) {
  Placement placement;
  Diagnostics& diagnostics = root.diagnostics();
  for (const std::string& pointer : root.elements("routes")) {
    const Json& route = diagnostics.document().root().at(Json::json_pointer(pointer));
    const bool is_route = route.is_array() && !route.empty() &&
                          std::all_of(route.begin(), route.end(), [](const Json& rank) {
                            return rank.is_number_integer() && rank >= 0 && rank <= 99'999;
                          });
    if (!is_route)
      diagnostics.add(pointer, "a route lists the rank of every stage, such as [0, 1]");
    else if (!placement.routes.empty() && placement.routes.front().size() != route.size())
      diagnostics.add(pointer, "every route passes the same number of stages");
    else
      placement.routes.push_back(route.get<std::vector<int>>());
  }
  placement.route_of_microbatch = root.integers("route_of_microbatch", at_least(0));
  const auto& chosen = placement.route_of_microbatch;
  const auto routes = static_cast<int>(placement.routes.size());
  if (routes == 0)
    root.error("routes", "one route at least is needed");
  else if ((routes > 1 || !chosen.empty()) &&
           chosen.size() != static_cast<std::size_t>(microbatches))
    root.error("route_of_microbatch", "every microbatch needs a route");
  else if (std::any_of(chosen.begin(), chosen.end(), [&](int route) { return route >= routes; }))
    root.error("route_of_microbatch", fmt::format("there are routes 0 to {} only", routes - 1));
  return placement;
}

}  // namespace

Program program_from_json(const JsonDocument& document) {
  return read_document<Program>(document, "pipewright/program/2", [](JsonObject& root) -> Program {
    Program read;
    read.microbatches = root.integer("microbatches", at_least(1));
    read.placement = read_placement(root, read.microbatches);
    read.communicators =
        parse_communicator_layout(root.choice("communicators", communicator_layouts()));
    read.transfers = parse_transfer_mode(root.choice("transfers", transfer_modes()));
    read.blocking = root.flag("blocking");
    read.asynchronous = root.flag("asynchronous");
    read.step_every = root.integer("step_every", at_least(0), 0);
    read.recompute_layers = root.integer("recompute_layers", at_least(0), 0);
    read.selective_recompute = root.flag("selective_recompute", false);
    for (const std::string& pointer : root.elements("ranks"))
      read.ranks.push_back(read_instructions(root, pointer));
    return read;
  });
}

}  // namespace pipewright::plan
