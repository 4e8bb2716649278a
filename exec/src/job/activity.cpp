#include "watch.hpp"

namespace pipewright::exec {
namespace {

// From the top: 1 bit that tells an instruction from an address (which has it clear in a process),
// 7 bits of kind, 24 of stage, 32 of microbatch.
constexpr std::uint64_t is_instruction = std::uint64_t{1} << 63;

}  // namespace

std::uint64_t activity_of(const plan::Instruction& instruction) {
  return is_instruction | static_cast<std::uint64_t>(instruction.kind) << 56 |
         static_cast<std::uint64_t>(instruction.stage & 0xffffff) << 32 |
         static_cast<std::uint32_t>(instruction.microbatch);
}

std::uint64_t activity_of(const char* phase) { return reinterpret_cast<std::uintptr_t>(phase); }

bool is_action(std::uint64_t activity) { return (activity & is_instruction) != 0; }

std::string activity_text(std::uint64_t activity) {
  if (!is_action(activity))
    return reinterpret_cast<const char*>(static_cast<std::uintptr_t>(activity));
  const auto kind = static_cast<plan::InstructionKind>(activity >> 56 & 0x7f);
  const auto stage = static_cast<int>(activity >> 32 & 0xffffff);
  const auto microbatch = static_cast<int>(static_cast<std::uint32_t>(activity));
  return to_string(plan::Instruction{.kind = kind, .stage = stage, .microbatch = microbatch});
}

}  // namespace pipewright::exec
