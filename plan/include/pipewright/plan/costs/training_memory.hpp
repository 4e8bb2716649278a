#pragma once

// Choices of a training that trade memory for time, precision or traffic. `stage_costs` turns them
// into bytes and seconds.

#include <string>
#include <vector>

#include "pipewright/plan/partition/recompute.hpp"

namespace pipewright::plan {

enum class Optimizer { AdamW, Sgd, SgdMomentum };

// Default constants of the optimizers.
inline constexpr double adam_beta1 = 0.9, adam_beta2 = 0.999, adam_epsilon = 1e-8;
inline constexpr double sgd_momentum = 0.9;

/// Full: all values of a parameter have the measured type. Mixed: parameters and gradients take 2
/// bytes each (bfloat16 or, for MixedHalf, float16), and the optimizer keeps a master copy and its
/// states in fp32.
enum class Precision { Full, Mixed, MixedHalf };
constexpr bool is_mixed(Precision precision) { return precision != Precision::Full; }

/// How a tensor reaches the next rank. Reference: within one process, the receiver reads the
/// sender's memory. Copy: between processes and GPUs, the receiver has its own buffer.
enum class TensorTransfer { Reference, Copy };

/// The choices of one training.
struct TrainingMemory {
  Optimizer optimizer = Optimizer::AdamW;
  Precision precision = Precision::Full;
  RecomputeMode recompute = RecomputeMode::None;
  /// The stage of ZeRO, and the number of replicas that it shards over: the optimizer state, from 2
  /// on also gradients, from 3 on also parameters.
  int zero = 0;
  int shards = 1;
  /// Number of expert-parallel ranks among these replicas: an expert has fewer replicas.
  int expert = 1;
  bool fp32_gradients = false;  // under mixed precision, accumulate gradients in fp32
  bool reads_ahead = false;     // microbatches are read by a background thread during compute
  friend bool operator==(const TrainingMemory&, const TrainingMemory&) = default;
};

// Names in scenario files, in the order of the enumerations.
const std::vector<std::string>& optimizers();       // adamw, sgd, sgd-momentum
const std::vector<std::string>& precisions();       // full, mixed, mixed-fp16
const std::vector<std::string>& local_transfers();  // reference, copy
std::string to_string(Optimizer optimizer);
std::string to_string(Precision precision);
std::string to_string(TensorTransfer local_transfer);

/// Returns how many values the optimizer keeps for each parameter: two moments (AdamW), a momentum,
/// or none.
int states_of(Optimizer optimizer);

}  // namespace pipewright::plan
