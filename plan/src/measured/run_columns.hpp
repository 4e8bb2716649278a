#pragma once

// The columns that a table of runs can have, each in one line: its names, what it sets, what it
// may hold.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/measured/measured_run.hpp"
#include "stage_words.hpp"

namespace pipewright::plan {

/// A line of a table: a run, and what it says in other words than the run.
struct RunRow {
  MeasuredRun run;
  int gpus = 0;
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
};

struct RunColumn {
  std::vector<std::string> names;  // the first is ours
  bool needed = false;
  /// Sets the value; answers what would be right when the text is not.
  std::function<std::string(RunRow&, const std::string&)> read;
};
const std::vector<RunColumn>& run_columns();

}  // namespace pipewright::plan
