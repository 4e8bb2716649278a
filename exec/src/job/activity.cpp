#include "pipewright/plan/json/fused_cell.hpp"
#include "watch.hpp"

namespace pipewright::exec {
namespace {

// Bits of an activity, from the highest: 1 that marks an instruction (an address in a process has
// it clear), 1 that marks a pair. An instruction has then 6 of kind, 24 of stage and 32 of
// microbatch; each action of a pair has 3, 12 and 16.
constexpr std::uint64_t is_instruction = std::uint64_t{1} << 63;
constexpr std::uint64_t is_pair = std::uint64_t{1} << 62;
constexpr int stage_bits = 12, microbatch_bits = 16, action_bits = 31;

bool fits(const plan::Instruction& action) {
  return action.stage < 1 << stage_bits && action.microbatch < 1 << microbatch_bits;
}

std::uint64_t bits_of(const plan::Instruction& action) {
  const auto kind = static_cast<std::uint64_t>(*plan::traits_of(action.kind).action);
  return (kind << stage_bits | static_cast<std::uint64_t>(action.stage)) << microbatch_bits |
         static_cast<std::uint64_t>(action.microbatch);
}

std::string action_text(std::uint64_t bits) {
  const auto lowest = [&](int count) {
    return static_cast<int>(bits & ((std::uint64_t{1} << count) - 1));
  };
  plan::Action action;
  action.microbatch = lowest(microbatch_bits);
  bits >>= microbatch_bits;
  action.stage = lowest(stage_bits);
  bits >>= stage_bits;
  action.kind = static_cast<plan::ActionKind>(lowest(3));
  return to_string(action);
}

}  // namespace

std::uint64_t activity_of(const plan::Instruction& instruction) {
  return is_instruction | static_cast<std::uint64_t>(instruction.kind) << 56 |
         static_cast<std::uint64_t>(instruction.stage & 0xffffff) << 32 |
         static_cast<std::uint32_t>(instruction.microbatch);
}

std::uint64_t activity_of(const plan::Instruction& first, const plan::Instruction& second) {
  if (!fits(first) || !fits(second))
    return activity_of(first);
  return is_instruction | is_pair | bits_of(first) << action_bits | bits_of(second);
}

std::uint64_t activity_of(const char* phase) { return reinterpret_cast<std::uintptr_t>(phase); }

bool is_action(std::uint64_t activity) { return (activity & is_instruction) != 0; }

std::string activity_text(std::uint64_t activity) {
  if (!is_action(activity))
    return reinterpret_cast<const char*>(static_cast<std::uintptr_t>(activity));
  if ((activity & is_pair) != 0)
    return plan::fused_cell(action_text(activity >> action_bits), action_text(activity));
  const auto kind = static_cast<plan::InstructionKind>(activity >> 56 & 0x3f);
  const auto stage = static_cast<int>(activity >> 32 & 0xffffff);
  const auto microbatch = static_cast<int>(static_cast<std::uint32_t>(activity));
  return to_string(plan::Instruction{.kind = kind, .stage = stage, .microbatch = microbatch});
}

}  // namespace pipewright::exec
