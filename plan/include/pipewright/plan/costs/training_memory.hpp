#pragma once

// What training keeps on a device, and how: the choices that trade memory for time, precision or
// traffic. `stage_costs` turns them into bytes and seconds.

#include <string>
#include <vector>

#include "pipewright/plan/partition/recompute.hpp"

namespace pipewright::plan {

enum class Optimizer { AdamW, Sgd, SgdMomentum };

// Their constants where nothing else is said.
inline constexpr double adam_beta1 = 0.9, adam_beta2 = 0.999, adam_epsilon = 1e-8;
inline constexpr double sgd_momentum = 0.9;

/// Full: all of a parameter's figures are in the type that was measured. Mixed: parameters and
/// gradients take 2 bytes each, of bfloat16 or float16, and the optimizer keeps a master copy and
/// its states in fp32.
enum class Precision { Full, Mixed, MixedHalf };
constexpr bool is_mixed(Precision precision) { return precision != Precision::Full; }

/// How a tensor reaches the next rank. Reference: in one process the neighbour reads its maker's
/// memory. Copy: between processes and GPUs the receiver has a buffer of its own.
enum class HandOver { Reference, Copy };

struct TrainingMemory {
  Optimizer optimizer = Optimizer::AdamW;
  Precision precision = Precision::Full;
  RecomputeMode recompute = RecomputeMode::None;
  /// The stage of ZeRO, and among how many copies it divides what it does: the optimizer's state;
  /// from 2 on gradients, too; from 3 on parameters, too.
  int zero = 0;
  int shards = 1;
  int expert =
      1;  // ranks that share out the experts, of those: a shard of an expert has fewer copies
  bool fp32_gradients = false;  // under mixed precision they are added up in fp32
  bool reads_ahead = false;     // microbatches are read beside the compute
  friend bool operator==(const TrainingMemory&, const TrainingMemory&) = default;
};

// The words of scenario files, in the order of the enumerations.
const std::vector<std::string>& optimizers();  // adamw, sgd, sgd-momentum
const std::vector<std::string>& precisions();  // full, mixed, mixed-fp16
const std::vector<std::string>& hand_overs();  // reference, copy
std::string to_string(Optimizer optimizer);
std::string to_string(Precision precision);
std::string to_string(HandOver hand_over);

/// How many values the optimizer keeps for each parameter: AdamW's two moments, a momentum, none.
int states_of(Optimizer optimizer);

}  // namespace pipewright::plan
