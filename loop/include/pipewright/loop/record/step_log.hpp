#pragma once

// The progress log of a training, which can be read while it runs: steps.jsonl with a line for each
// step, and the timeline of the last step.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

/// A line of steps.jsonl. The fields after the throughput are present only if they are known.
/// {"step": 3, "steps": 20, "loss": 4.1, "seconds": 0.2, "tokens_per_s": 20480,
///  "learning_rate": 0.001, "gradient_norm": 0.8, "evaluation_loss": 4.2, "perplexity": 66.7,
///  "mfu": 0.31, "bubble": 0.12, "peak_bytes": 81920, "waiting_s": {"transfer": 0.01},
///  "slow": "rank 2 is slow: …"}
struct StepLine {
  int step = 0;   // from 0
  int steps = 0;  // of the whole training
  double loss = 0;
  double seconds = 0;
  double units_per_s = 0;
  std::string unit;  // "tokens", "images"
  std::optional<double> learning_rate{};
  std::optional<double> gradient_norm{};  // before clipping
  /// After the step; for tokens, `to_line` adds the perplexity.
  std::optional<double> evaluation_loss{};
  /// Model FLOPs utilization: the model's FLOPs of a step, over what the devices could have
  /// computed in its time (Chowdhery et al., arXiv 2204.02311, appendix B).
  std::optional<double> mfu{};
  // The following three cover the ranks in the first process.
  std::optional<double> bubble{};      // share of the step in which the ranks compute nothing
  std::optional<double> peak_bytes{};  // of the rank with the largest peak
  /// Seconds of all ranks by cause; causes without any are left out.
  std::map<std::string, double> waiting{};
  std::string slow{};  // the slow ranks of all processes and what they cost; empty if none is slow
  friend bool operator==(const StepLine&, const StepLine&) = default;
};
/// Returns the line without a line break.
std::string to_line(const StepLine& step);
/// Parses a line; returns nothing if it is not a valid step.
std::optional<StepLine> parse_step_line(std::string_view line);

/// Writes the log of a training. The training continues if the disk is full; what cannot be written
/// is dropped.
class StepLog {
 public:
  /// Opens the log in `folder` and appends to the lines of an earlier part of the training.
  explicit StepLog(std::filesystem::path folder);

  void add(const StepLine& step);
  /// Rewrites last_step.trace.json, at most once a second. `timeline` is called only if the file is
  /// written.
  void show(const std::function<plan::Timeline()>& timeline);
  /// Removes last_step.trace.json, which measured.trace.json has replaced.
  void end();

 private:
  std::filesystem::path folder_;
  std::ofstream lines_;
  std::optional<std::chrono::steady_clock::time_point> shown_;
};

/// Follows a steps.jsonl that another process writes.
class StepReader {
 public:
  explicit StepReader(std::filesystem::path file) : file_(std::move(file)) {}
  /// Returns the steps added since the last call. An incomplete line is returned by a later call;
  /// an invalid line is skipped.
  std::vector<StepLine> next();

 private:
  std::filesystem::path file_;
  std::uintmax_t read_ = 0;
};

}  // namespace pipewright::loop
