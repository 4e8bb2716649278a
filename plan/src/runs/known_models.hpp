#pragma once

// Shapes of public models, so that a table of runs may name a model instead of its sizes.

#include <string>
#include <vector>

#include "pipewright/plan/runs/training_run.hpp"

namespace pipewright::plan {

struct KnownModel {
  const char* name;
  int layers, hidden, heads, kv_heads, head_channels, feed_forward, vocabulary;
  bool gated = true;
  int experts = 0, experts_per_token = 0, expert_feed_forward = 0, shared_experts = 0;
  int dense_layers = 0;
  int q_rank = 0, kv_rank = 0, rope_channels = 0;
};

/// Null: not known. Case, blanks, dashes and underscores do not count.
const KnownModel* find_known_model(const std::string& name);
std::vector<std::string> known_model_names();
/// Sets what the run leaves open.
void fill(TrainingRun& run, const KnownModel& model);

}  // namespace pipewright::plan
