#pragma once

// A run as given by a table or by a trainer's arguments, and the sizes that follow from it.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/models/measured/measured_run.hpp"
#include "stage_words.hpp"

namespace pipewright::models {

/// The speed of a run, in the unit of its table.
struct Throughput {
  enum class Unit {
    Samples,
    SamplesOfDevice,
    Tokens,
    TokensOfDevice,
    TeraflopsOfDevice,
    Utilization
  };
  Unit unit = Unit::Samples;
  double value = 0;  // per second; or percent of the peak
};

/// The given settings of a run, some of them in other terms than MeasuredRun's.
struct RunRow {
  MeasuredRun run;
  int gpus = 0;
  int data = 0;           // data-parallel replicas; 0: as many as the GPUs allow
  int microbatches = -1;  // not given
  int shared_experts = 0;
  int shared_expert_ffn = 0;  // the total width of all shared experts
  int dense_layers = 0;       // leading dense layers of a mixture
  std::string moe_layer_freq{};
  std::optional<bool> tied{}, bias{};
  std::string latent{};                 // "yes" or "no"; empty: determined by the ranks
  int qk_channels = 0, v_channels = 0;  // per head in latent attention
  int layers_per_virtual_stage = 0;
  StageWords stages{};
  std::string schedule{};  // any of its names
  std::optional<bool> overlaps_transfers{};
  std::optional<Throughput> throughput{};  // the first one given
};

/// Returns the precision of products for "bf16", or for products and the rest ("fp8-hybrid+bf16");
/// nothing for unknown words.
std::optional<plan::ProductPrecision> products_of(const std::string& precision);

/// Returns true if the type has 16 bits.
bool is_half(const std::string& type);

constexpr int vocabulary_multiple = 128;  // Megatron-LM's --make-vocab-size-divisible-by
/// Returns the vocabulary, padded to a multiple.
int padded_vocabulary(int vocabulary, int multiple);

/// Sets the layers from a hybrid's pattern, and the stages of each rank where it has pipes. Throws
/// InputError if these do not divide among the ranks.
void set_layers_by_pattern(MeasuredRun& run);

/// Sets the schedule and the number of stages per rank. Returns faults as `settle_sizes` does.
std::vector<StageFault> settle_schedule(RunRow& row);
/// Computes the iteration time if only a rate is given. A fraction of the device's peak is kept for
/// callers that know the device.
void settle_time(RunRow& row);

/// Partitions the layers and sets the rounds of interleaved stages. Returns the faults of an
/// impossible run, by column. `tells_head_channels`: they may differ from hidden / heads.
std::vector<StageFault> settle_sizes(RunRow& row, bool tells_head_channels);

}  // namespace pipewright::models
