#include "pipewright/plan/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "csv_rows.hpp"
#include "index_text.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json_document.hpp"

namespace pipewright::plan {
namespace {

struct KindWord {
  InstructionKind kind;
  std::string_view word;  // between the stage and the microbatch
};
/// A word never begins another that stands after it, so the first match is the right one.
constexpr std::array<KindWord, 15> kind_words{{
    {InstructionKind::Load, "LOAD"},
    {InstructionKind::SendActivation, "SEND_F"},
    {InstructionKind::ReceiveActivation, "RECV_F"},
    {InstructionKind::SendGradient, "SEND_B"},
    {InstructionKind::ReceiveGradient, "RECV_B"},
    {InstructionKind::OptimizerStep, "STEP"},
    {InstructionKind::ReduceTied, "REDUCE_TIED"},
    {InstructionKind::ReduceGradients, "REDUCE_GRAD"},
    {InstructionKind::Unshard, "UNSHARD"},
    {InstructionKind::Reshard, "RESHARD"},
    {InstructionKind::Forward, "F"},
    {InstructionKind::Backward, "B"},
    {InstructionKind::InputGradient, "I"},
    {InstructionKind::WeightGradient, "W"},
    {InstructionKind::Recompute, "R"},
}};

std::string_view word_of(InstructionKind kind) {
  for (const KindWord& entry : kind_words)
    if (entry.kind == kind)
      return entry.word;
  assert(false);
  return "";
}

std::string with_slot(const Instruction& instruction) {
  if (instruction.slot < 0)
    return to_string(instruction);
  return fmt::format("{}#{}", to_string(instruction), instruction.slot);
}

}  // namespace

std::string to_string(const Instruction& instruction) {
  const auto word = word_of(instruction.kind);
  if (instruction.microbatch < 0)
    return fmt::format("{}{}", instruction.stage, word);
  return fmt::format("{}{}{}", instruction.stage, word, instruction.microbatch);
}

std::optional<Instruction> parse_instruction(std::string_view text) {
  Instruction instruction;
  const auto stage = take_index(text);
  if (!stage)
    return {};
  instruction.stage = *stage;
  const auto entry = std::find_if(kind_words.begin(), kind_words.end(),
                                  [&](const KindWord& e) { return text.starts_with(e.word); });
  if (entry == kind_words.end())
    return {};
  instruction.kind = entry->kind;
  text.remove_prefix(entry->word.size());
  if (!has_microbatch(instruction.kind))
    return text.empty() ? std::optional(instruction) : std::nullopt;

  const auto microbatch = take_index(text);
  if (!microbatch)
    return {};
  instruction.microbatch = *microbatch;
  if (text.empty())
    return instruction;
  if (text.front() != '#')
    return {};
  text.remove_prefix(1);
  const auto slot = take_index(text);
  if (!slot || !text.empty())
    return {};
  instruction.slot = *slot;
  return instruction;
}

bool append_cell(std::string_view cell, std::vector<Instruction>& instructions) {
  if (const auto instruction = parse_instruction(cell)) {
    instructions.push_back(*instruction);
    return true;
  }
  const auto members = fused_members(cell);
  if (members.size() != 2)
    return false;
  auto first = parse_instruction(members[0]);
  const auto second = parse_instruction(members[1]);
  const auto is_action = [](const std::optional<Instruction>& i) {
    return i && is_compute(i->kind) && has_microbatch(i->kind) && i->kind != InstructionKind::Load;
  };
  if (!is_action(first) || !is_action(second))
    return false;
  first->fused_with_next = true;
  instructions.push_back(*first);
  instructions.push_back(*second);
  return true;
}

bool has_microbatch(InstructionKind kind) {
  return kind != InstructionKind::OptimizerStep && kind != InstructionKind::Unshard &&
         kind != InstructionKind::Reshard && !is_reduce(kind);
}

bool is_compute(InstructionKind kind) {
  return !is_send(kind) && !is_receive(kind) && !is_reduce(kind);
}

bool is_reduce(InstructionKind kind) {
  return kind == InstructionKind::ReduceTied || kind == InstructionKind::ReduceGradients;
}

bool is_send(InstructionKind kind) {
  return kind == InstructionKind::SendActivation || kind == InstructionKind::SendGradient;
}

bool is_receive(InstructionKind kind) {
  return kind == InstructionKind::ReceiveActivation || kind == InstructionKind::ReceiveGradient;
}

InstructionKind instruction_kind(ActionKind kind) {
  switch (kind) {
    case ActionKind::Forward:
      return InstructionKind::Forward;
    case ActionKind::Backward:
      return InstructionKind::Backward;
    case ActionKind::InputGradient:
      return InstructionKind::InputGradient;
    case ActionKind::WeightGradient:
      return InstructionKind::WeightGradient;
    case ActionKind::Recompute:
      return InstructionKind::Recompute;
  }
  assert(false);
  return InstructionKind::Forward;
}

int stage_count(const Program& program) { return program.placement.stage_count(); }

bool crosses_ranks(const Program& program, int stage, int other, int microbatch) {
  if (other < 0 || other >= stage_count(program))
    return false;
  const Placement& placement = program.placement;
  return placement.rank_of(stage, microbatch) != placement.rank_of(other, microbatch);
}

Instruction counterpart(const Instruction& transfer) {
  Instruction other = transfer;
  other.slot = -1;
  switch (transfer.kind) {
    case InstructionKind::SendActivation:
      other.kind = InstructionKind::ReceiveActivation;
      other.stage = transfer.stage + 1;
      break;
    case InstructionKind::ReceiveActivation:
      other.kind = InstructionKind::SendActivation;
      other.stage = transfer.stage - 1;
      break;
    case InstructionKind::SendGradient:
      other.kind = InstructionKind::ReceiveGradient;
      other.stage = transfer.stage - 1;
      break;
    case InstructionKind::ReceiveGradient:
      other.kind = InstructionKind::SendGradient;
      other.stage = transfer.stage + 1;
      break;
    case InstructionKind::Load:
    case InstructionKind::Forward:
    case InstructionKind::Backward:
    case InstructionKind::InputGradient:
    case InstructionKind::WeightGradient:
    case InstructionKind::Recompute:
    case InstructionKind::ReduceTied:
    case InstructionKind::ReduceGradients:
    case InstructionKind::OptimizerStep:
    case InstructionKind::Unshard:
    case InstructionKind::Reshard:
      assert(false);
      break;
  }
  return other;
}

int peer_stage(const Instruction& transfer) { return counterpart(transfer).stage; }

int peer_rank(const Program& program, const Instruction& transfer) {
  return program.placement.rank_of(peer_stage(transfer), transfer.microbatch);
}

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
        row.push_back(fmt::format("({};{})OVERLAP_F_B", with_slot(instructions[at]),
                                  with_slot(instructions[at + 1])));
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
                      fmt::format("\"{}\" is no instruction, such as \"0F2#1\"", text));
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
  Program program =
      read_document<Program>(document, "pipewright/program/2", [](JsonObject& root) -> Program {
        Program read;
        read.microbatches = root.integer("microbatches", at_least(1));
        read.placement = read_placement(root, read.microbatches);
        read.communicators =
            parse_communicator_layout(root.choice("communicators", communicator_layouts()));
        read.transfers = parse_transfer_mode(root.choice("transfers", transfer_modes()));
        read.blocking = root.flag("blocking");
        read.asynchronous = root.flag("asynchronous");
        for (const std::string& pointer : root.elements("ranks"))
          read.ranks.push_back(read_instructions(root, pointer));
        return read;
      });
  try {
    validate(program);
  } catch (const InputError& error) {
    const auto place = fmt::format("{}: /ranks: ", document.position("/ranks"));
    std::string text = place;
    for (const char letter : std::string_view(error.what())) {
      text += letter;
      if (letter == '\n')
        text += place;
    }
    throw InputError(text);
  }
  return program;
}

}  // namespace pipewright::plan
