#pragma once

// A measured run of a transformer training: the model, its parallelism, the time per iteration and
// the memory. Tables of runs are CSV files.

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
  std::string id;  // as in the table, or "line 7"
  int line = 0;    // in the table
  plan::TransformerTraining training;
  plan::Cut cut;
  TrainerOptions options{};
  bool tells_recompute = false;  // `cut.recompute` was given
  bool tells_attention = false;  // `training.attention` was given
  bool names_schedule = false;
  std::optional<plan::Seconds> iteration{};
  std::optional<double> utilization{};  // fraction of the device's peak, if the table has only that
  std::optional<plan::Bytes> peak_memory{};       // at its maximum
  std::optional<plan::Bytes> reserved_memory{};   // maximum reserved by LibTorch's allocator
  std::optional<plan::Bytes> allocated_memory{};  // between two iterations

  int microbatches() const { return cut.microbatches(training.batch); }
  /// Returns the cut, with this recomputation if the run does not specify one.
  plan::Cut cut_if(plan::RecomputeMode recompute) const {
    plan::Cut assumed = cut;
    if (!tells_recompute)
      assumed.recompute = recompute;
    return assumed;
  }
  friend bool operator==(const MeasuredRun&, const MeasuredRun&) = default;
};

/// A row that is not a valid run, with all its faults.
struct RefusedRow {
  std::string id;
  int line = 0;
  std::vector<std::string> reasons;  // name:line:column: …
};

struct RunTable {
  std::vector<MeasuredRun> runs;
  std::vector<std::string> ignored;  // unknown columns
  std::vector<RefusedRow> refused;
};

/// The rule for iteration times of a table. Needed: the table is for calibration, so every row must
/// be valid and have a time. Optional: the runs are to be predicted, and an invalid row is rejected
/// without the others.
enum class RunTimes { Needed, Optional };

/// Sets the iteration time of runs that report a fraction of a device's peak (MFU), counted as in
/// Megatron-LM, without recomputation. `peak`: FLOP/s.
void set_times_by_peak(std::vector<MeasuredRun>& runs, double peak);

/// Reads a table. Throws InputError with all faults of the file: `name:line:column: …`.
RunTable read_runs(std::string_view csv, const std::string& name, RunTimes times);
RunTable read_runs(const std::filesystem::path& file, RunTimes times);

}  // namespace pipewright::models
