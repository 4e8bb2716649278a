#pragma once

// A part of a host thread's time, to which a device's records are attributed.

#include <cstdint>

#include "pipewright/plan/program/instruction.hpp"
#include "pipewright/profiler/activity/gpu_record.hpp"

namespace pipewright::profiler {

/// A range in which a host thread worked on an instruction of a rank, or on a layer's part of it.
/// The ranges of a rank do not overlap.
struct WorkRange {
  std::uint64_t label = 0;  // unique, not 0
  int rank = 0;
  plan::Instruction instruction;
  int layer = -1;  // -1 if it is the whole instruction
  Nanoseconds start = 0;
  Nanoseconds end = 0;
  friend bool operator==(const WorkRange&, const WorkRange&) = default;
};

}  // namespace pipewright::profiler
