#include "pipewright/plan/program/instruction.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "index_text.hpp"
#include "json/csv_rows.hpp"

namespace pipewright::plan {
namespace {

/// Returns the traits with the longest word that the text begins with, since "REDUCE_TIED" also
/// begins with "R".
const InstructionTraits* longest_word(std::string_view text) {
  const InstructionTraits* found = nullptr;
  for (const InstructionTraits& row : instruction_traits)
    if (text.starts_with(row.word) && (found == nullptr || row.word.size() > found->word.size()))
      found = &row;
  return found;
}

}  // namespace

std::string to_string(const Instruction& instruction) {
  // Built without a format string for speed, because tables have names by the hundred thousand.
  const fmt::format_int stage(instruction.stage);
  std::string text(stage.data(), stage.size());
  text += traits_of(instruction.kind).word;
  if (instruction.microbatch >= 0) {
    const fmt::format_int microbatch(instruction.microbatch);
    text.append(microbatch.data(), microbatch.size());
  }
  return text;
}

std::string with_slot(const Instruction& instruction) {
  if (instruction.slot < 0)
    return to_string(instruction);
  return fmt::format("{}#{}", to_string(instruction), instruction.slot);
}

std::optional<Instruction> parse_instruction(std::string_view text) {
  Instruction instruction;
  const auto stage = take_index(text);
  if (!stage)
    return {};
  instruction.stage = *stage;
  const InstructionTraits* const traits = longest_word(text);
  if (traits == nullptr)
    return {};
  instruction.kind = traits->kind;
  text.remove_prefix(traits->word.size());
  if (!has_microbatch(traits->kind))
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
    return i && traits_of(i->kind).action;
  };
  if (!is_action(first) || !is_action(second))
    return false;
  first->fused_with_next = true;
  instructions.push_back(*first);
  instructions.push_back(*second);
  return true;
}

InstructionKind instruction_kind(ActionKind kind) {
  const auto* const row =
      std::find_if(instruction_traits.begin(), instruction_traits.end(),
                   [&](const InstructionTraits& traits) { return traits.action == kind; });
  return row->kind;
}

}  // namespace pipewright::plan
