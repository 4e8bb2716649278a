#pragma once

// A measured run of a transformer's training: what was trained, how it was cut, how long an
// iteration took and what memory it needed. Tables of them are CSV files.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/models/measured/trainer_options.hpp"
#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::models {

struct MeasuredRun {
  std::string id;  // as the table calls it, or "line 7"
  int line = 0;    // of the table
  plan::TransformerTraining training;
  plan::Cut cut;
  TrainerOptions options{};
  bool tells_recompute = false;  // whether `cut.recompute` was said of the run
  bool tells_attention = false;  // … `training.attention`
  bool names_schedule = false;
  std::optional<plan::Seconds> iteration{};
  std::optional<double> utilization{};  // of the device's peak, where the table says that alone
  std::optional<plan::Bytes> peak_memory{};       // at its highest
  std::optional<plan::Bytes> reserved_memory{};   // by LibTorch's allocator, likewise
  std::optional<plan::Bytes> allocated_memory{};  // between two iterations

  int microbatches() const { return cut.microbatches(training.batch); }
  /// The cut, where a run that does not say so recomputed like this.
  plan::Cut cut_if(plan::RecomputeMode recompute) const {
    plan::Cut assumed = cut;
    if (!tells_recompute)
      assumed.recompute = recompute;
    return assumed;
  }
  friend bool operator==(const MeasuredRun&, const MeasuredRun&) = default;
};

/// A row that is no run, with all that is wrong with it.
struct RefusedRow {
  std::string id;
  int line = 0;
  std::vector<std::string> reasons;  // name:line:column: …
};

struct RunTable {
  std::vector<MeasuredRun> runs;
  std::vector<std::string> ignored;  // columns that nobody knows
  std::vector<RefusedRow> refused;
};

/// Whether each run has to have its time. Where it need not, the runs are to be predicted: a row
/// that is wrong is refused by itself. A table to learn from has to be right.
enum class RunTimes { Needed, Optional };

/// The time of an iteration of runs that say what share of a device's peak they reached, counted as
/// Megatron-LM does, without what is computed again. `peak`: FLOP/s.
void set_times_by_peak(std::vector<MeasuredRun>& runs, double peak);

/// Reads a table. Throws InputError with every fault of the file: `name:line:column: …`.
RunTable read_runs(std::string_view csv, const std::string& name, RunTimes times);
RunTable read_runs(const std::filesystem::path& file, RunTimes times);

}  // namespace pipewright::models
