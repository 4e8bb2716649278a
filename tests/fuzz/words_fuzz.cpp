// Single words, one per line: actions, instructions, DeepSpeed's names, communicator layouts,
// transfer modes, partition methods and their patterns.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/generators/deepspeed.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "pipewright/plan/partitioners/layer_weights.hpp"
#include "pipewright/plan/schedules/action.hpp"
#include "promise.hpp"
#include "reader.hpp"

namespace words_fuzz {

using namespace pipewright::plan;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;
using pipewright::fuzz::may_be_refused;

void try_instruction(std::string_view text) {
  const auto instruction = parse_instruction(text);
  if (!instruction)
    return;
  const auto again = parse_instruction(to_string(*instruction));
  demand(again && key_of(*again) == key_of(*instruction), "an instruction reads back as written");
  if (is_send(instruction->kind) || is_receive(instruction->kind))
    demand(key_of(counterpart(counterpart(*instruction))) == key_of(*instruction),
           "the counterpart of the counterpart is the instruction itself");
}

void try_action(std::string_view text) {
  if (const auto action = parse_action(text)) {
    demand(parse_action(to_string(*action)) == action, "an action reads back as written");
    const auto instruction = parse_instruction(text);
    demand(instruction && instruction->kind == instruction_kind(action->kind),
           "every action is an instruction");
  }
}

void try_cell(std::string_view text) {
  std::vector<Instruction> instructions;
  if (append_cell(text, instructions))
    demand(instructions.size() == 1 || instructions.size() == 2,
           "a cell has one instruction or a pair");
  else
    demand(instructions.empty(), "a rejected cell adds nothing");
}

void try_names(const std::string& text) {
  if (const auto kind = from_deepspeed_name(text))
    demand(deepspeed_name(*kind).has_value(), "a DeepSpeed name maps back");
  if (const auto layout = accepted([&] { return parse_communicator_layout(text); }))
    demand(to_string(*layout) == text, "a layout reads back as written");
  if (const auto mode = accepted([&] { return parse_transfer_mode(text); }))
    demand(to_string(*mode) == text, "a mode reads back as written");
  ScheduleRequest request;
  request.name = text;
  request.ranks = 2;
  may_be_refused([&] { demand(stage_count(request) >= 1, "a schedule has a stage"); });
}

void try_method(const std::string& text, const Model& model) {
  if (!accepted([&] { return check_partition_method(text), true; }))
    return;
  if (const auto pattern = type_pattern(text))
    may_be_refused([&] { type_weights(model, *pattern); });
}

void try_text(std::string_view text) {
  static const Model model = gpt_model({.blocks = 2});
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    try_instruction(line);
    try_action(line);
    try_cell(line);
    try_names(std::string(line));
    try_method(std::string(line), model);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

const pipewright::fuzz::Reader reader("words", try_text);

}  // namespace words_fuzz
