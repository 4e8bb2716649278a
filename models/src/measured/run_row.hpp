#pragma once

// A run as a table or a trainer's arguments say it, in their own words, and the sizes that follow.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/models/measured/measured_run.hpp"
#include "stage_words.hpp"

namespace pipewright::models {

/// How fast a run was, in the unit of its table.
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
  double value = 0;  // each second; of the peak, in per cent
};

/// What is said of a run, some of it in other words than the run.
struct RunRow {
  MeasuredRun run;
  int gpus = 0;
  int data = 0;           // copies of a pipeline; 0: as many as there are GPUs for
  int microbatches = -1;  // not said
  int shared_experts = 0;
  int shared_expert_ffn = 0;  // the width of all of them
  int dense_layers = 0;       // at the front of a mixture
  std::string moe_layer_freq{};
  std::optional<bool> tied{}, bias{};
  std::string latent{};                 // "yes" or "no"; empty: by the ranks
  int qk_channels = 0, v_channels = 0;  // of a head in latent attention
  int layers_per_virtual_stage = 0;
  StageWords stages{};
  std::string schedule{};  // by any of its names
  std::optional<bool> overlaps_transfers{};
  std::optional<Throughput> throughput{};  // the first that is said
};

/// In what "bf16", or products and the rest ("fp8-hybrid+bf16"), are multiplied; nothing for other
/// words.
std::optional<plan::ProductPrecision> products_of(const std::string& precision);

/// Whether a number of the type has 16 bits.
bool is_half(const std::string& type);

constexpr int vocabulary_multiple = 128;  // Megatron-LM's --make-vocab-size-divisible-by
/// The vocabulary with what it is padded by, so that it divides.
int padded_vocabulary(int vocabulary, int multiple);

/// A hybrid's pattern says its layers, and perhaps those of each stage.
void set_layers_by_pattern(MeasuredRun& run);

/// The schedule and how many stages of a rank it has; answers as `settle_sizes`.
std::vector<StageFault> settle_schedule(RunRow& row);
/// The time of an iteration, where only a rate is said. The share of a device's peak is left to
/// whoever knows the device.
void settle_time(RunRow& row);

/// Cuts the layers and settles the rounds of interleaved stages; answers what is wrong with a run
/// that could not have been, by column. `tells_head_channels`: they are not hidden / heads.
std::vector<StageFault> settle_sizes(RunRow& row, bool tells_head_channels);

}  // namespace pipewright::models
