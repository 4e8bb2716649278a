#pragma once

// Whether a training fits on its devices, of what LibTorch's allocator would reserve: it does, it
// does with a condition, or it does not; and how much of that is fragmentation.

#include <optional>
#include <string>
#include <string_view>

#include "pipewright/models/allocator/training_replay.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::models {

enum class Fits { Yes, But, No };
/// "fits", "fits, but", "does not fit".
std::string_view to_string(Fits fits);

/// Of a device's memory: what is outside the allocator is in there, CUDA's context and NCCL's
/// buffers.
constexpr double memory_margin = 0.05;

struct MemoryVerdict {
  Fits fits = Fits::Yes;
  std::string reason{};     // of But and No
  plan::Bytes allocated{};  // most at once
  plan::Bytes reserved{};   // likewise, with as large a device as is needed
  plan::Bytes left{};       // of the device; below zero: missing
  /// What is reserved beyond what is ever allocated.
  plan::Bytes fragmentation() const { return reserved - allocated; }
};

/// On devices of `memory` bytes; 0: with any. Throws as `replay_training`.
MemoryVerdict memory_verdict(const plan::TransformerTraining& training, const plan::Cut& cut,
                             int rank, plan::Bytes memory);

/// A verdict, or why there is none.
struct ReservedMemory {
  std::optional<MemoryVerdict> verdict{};
  std::string refused{};
};
/// `allocated_bytes`, `reserved_bytes`, `fragmentation_bytes`, `left_bytes`, `verdict` and, unless
/// it fits as it is, `reason`; or `refused`.
plan::Json to_json(const ReservedMemory& reserved);

/// As `memory_verdict`; it throws nothing that `refused` can say.
ReservedMemory reserved_memory(const plan::TransformerTraining& training, const plan::Cut& cut,
                               int rank, plan::Bytes memory);

}  // namespace pipewright::models
