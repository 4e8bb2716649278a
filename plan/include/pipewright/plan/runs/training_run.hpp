#pragma once

// A training run of a transformer in figures: what was trained, how it was cut, how long an
// iteration took. Tables of them are CSV files.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/model/transformer_layers.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

enum class RunRecompute { Unknown, None, Selective, Full };
enum class RunPrecision { Half, Float8 };

struct TrainingRun {
  std::string id;     // as the table calls it, or "line 7"
  std::string model;  // as the table calls it; may be empty
  int line = 0;

  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_channels = 0;
  int feed_forward = 0;
  bool gated = false;  // three matrices in the feed-forward, not two
  int vocabulary = 0;
  int experts = 0;  // of a layer; 0: it is dense
  int experts_per_token = 0;
  int expert_feed_forward = 0;
  int shared_experts = 0;
  int dense_layers = 0;  // at the front of a mixture
  // Of latent attention: the ranks, and the channels of a head that hold its place.
  int q_rank = 0;
  int kv_rank = 0;
  int rope_channels = 0;
  int sequence = 0;

  int gpus = 0;
  int tensor = 1;
  int data = 1;
  int pipeline = 1;
  int context = 1;
  int expert = 1;  // of the data axis: devices that share the experts
  int chunks = 1;  // stages of each rank
  /// By name. Empty: 1F1B, interleaved where a rank has several stages.
  std::string schedule{};
  std::vector<int> stage_layers{};  // by stage; empty: all have as many
  int global_batch = 0;
  int microbatch = 0;
  bool sequence_parallel = false;
  int zero = 0;
  RunRecompute recompute = RunRecompute::Unknown;
  AttentionKind attention = AttentionKind::Scores;
  RunPrecision precision = RunPrecision::Half;

  std::optional<Seconds> iteration{};  // measured
  std::optional<Bytes> peak_memory{};

  int microbatches() const { return global_batch / data / microbatch; }
  int stages() const { return pipeline * chunks; }
  int layers_of(int stage) const {
    return stage_layers.empty() ? layers / stages() : stage_layers[static_cast<std::size_t>(stage)];
  }
  std::string_view schedule_name() const {
    if (!schedule.empty())
      return schedule;
    return chunks > 1 ? "interleaved-1f1b" : "1f1b";
  }
  /// Parameters of one layer, of the embedding, of the head.
  double layer_parameters() const;
  /// Of those, of the routed experts; both are means over layers.
  double expert_parameters() const;
  double embedding_parameters() const;
  double head_parameters() const;
  friend bool operator==(const TrainingRun&, const TrainingRun&) = default;
};

/// Sets the sizes of a public model. False: no model of that name is known; case, blanks, dashes
/// and underscores do not count.
bool set_known_model(TrainingRun& run, const std::string& name);
std::vector<std::string> known_models();

struct RunTable {
  std::vector<TrainingRun> runs;
  std::vector<std::string> ignored;  // columns that nobody knows
};

/// Whether each run has to have its time.
enum class RunTimes { Needed, Optional };

/// Reads a table. Throws InputError with every fault of the file: `name:line:column: …`.
RunTable read_runs(std::string_view csv, const std::string& name, RunTimes times);
RunTable read_runs(const std::filesystem::path& file, RunTimes times);

}  // namespace pipewright::plan
