#include "pipewright/plan/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

struct KindWord {
  InstructionKind kind;
  std::string_view word;  // between the stage and the microbatch
};
/// A word never begins another that stands after it, so the first match is the right one.
constexpr std::array<KindWord, 11> kind_words{{
    {InstructionKind::Load, "LOAD"},
    {InstructionKind::SendActivation, "SEND_F"},
    {InstructionKind::ReceiveActivation, "RECV_F"},
    {InstructionKind::SendGradient, "SEND_B"},
    {InstructionKind::ReceiveGradient, "RECV_B"},
    {InstructionKind::OptimizerStep, "STEP"},
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

/// Takes a number that is not negative off the front of `text`.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (bad != std::errc() || number < 0)
    return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
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
  const auto stage = take_number(text);
  if (!stage)
    return {};
  instruction.stage = *stage;
  const auto entry = std::find_if(kind_words.begin(), kind_words.end(),
                                  [&](const KindWord& e) { return text.starts_with(e.word); });
  if (entry == kind_words.end())
    return {};
  instruction.kind = entry->kind;
  text.remove_prefix(entry->word.size());
  if (instruction.kind == InstructionKind::OptimizerStep)
    return text.empty() ? std::optional(instruction) : std::nullopt;

  const auto microbatch = take_number(text);
  if (!microbatch)
    return {};
  instruction.microbatch = *microbatch;
  if (text.empty())
    return instruction;
  if (text.front() != '#')
    return {};
  text.remove_prefix(1);
  const auto slot = take_number(text);
  if (!slot || !text.empty())
    return {};
  instruction.slot = *slot;
  return instruction;
}

bool is_compute(InstructionKind kind) { return !is_send(kind) && !is_receive(kind); }

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

int stage_count(const Program& program) { return static_cast<int>(program.rank_of_stage.size()); }

bool crosses_ranks(const Program& program, int stage, int other) {
  if (other < 0 || other >= stage_count(program))
    return false;
  return program.rank_of_stage[static_cast<std::size_t>(stage)] !=
         program.rank_of_stage[static_cast<std::size_t>(other)];
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
    case InstructionKind::OptimizerStep:
      assert(false);
      break;
  }
  return other;
}

int peer_stage(const Instruction& transfer) { return counterpart(transfer).stage; }

int peer_rank(const Program& program, const Instruction& transfer) {
  return program.rank_of_stage[static_cast<std::size_t>(peer_stage(transfer))];
}

std::vector<int> slot_counts(const Program& program) {
  std::vector<int> counts(program.rank_of_stage.size(), 0);
  for (const auto& instructions : program.ranks)
    for (const Instruction& instruction : instructions) {
      int& count = counts[static_cast<std::size_t>(instruction.stage)];
      count = std::max(count, instruction.slot + 1);
    }
  return counts;
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
    for (const Instruction& instruction : instructions)
      row.push_back(with_slot(instruction));
    ranks.push_back(std::move(row));
  }
  return {{"format", "pipewright/program/1"},
          {"microbatches", program.microbatches},
          {"rank_of_stage", program.rank_of_stage},
          {"communicators", to_string(program.communicators)},
          {"transfers", to_string(program.transfers)},
          {"blocking", program.blocking},
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
    if (const auto instruction = parse_instruction(text))
      instructions.push_back(*instruction);
    else
      diagnostics.add(fmt::format("{}/{}", pointer, i),
                      fmt::format("\"{}\" is no instruction, such as \"0F2#1\"", text));
  }
  return instructions;
}

}  // namespace

Program program_from_json(const JsonDocument& document) {
  Program program =
      read_document<Program>(document, "pipewright/program/1", [](JsonObject& root) -> Program {
        Program read;
        read.microbatches = root.integer("microbatches", at_least(1));
        read.rank_of_stage = root.integers("rank_of_stage", at_least(0));
        read.communicators =
            parse_communicator_layout(root.choice("communicators", communicator_layouts()));
        read.transfers = parse_transfer_mode(root.choice("transfers", transfer_modes()));
        read.blocking = root.flag("blocking");
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
