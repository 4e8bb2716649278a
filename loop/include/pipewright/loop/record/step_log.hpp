#pragma once

// What a training leaves while it goes on, so that somebody can look on: steps.jsonl, a line for
// each step, and the timeline of the last one.

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

/// {"step": 3, "steps": 20, "loss": 4.1, "seconds": 0.2, "tokens_per_s": 20480,
///  "learning_rate": 0.001, "gradient_norm": 0.8, "evaluation_loss": 4.2, "perplexity": 66.7,
///  "mfu": 0.31, "bubble": 0.12, "peak_bytes": 81920, "waiting_s": {"transfer": 0.01},
///  "slow": "rank 2 is slow: …"}
/// What follows the speed stands there where it is known.
struct StepLine {
  int step = 0;   // from 0
  int steps = 0;  // of the whole training
  double loss = 0;
  double seconds = 0;
  double units_per_s = 0;
  std::string unit;  // "tokens", "images"
  std::optional<double> learning_rate{};
  std::optional<double> gradient_norm{};    // before clipping
  std::optional<double> evaluation_loss{};  // after the step; of tokens it also gives a perplexity
  /// The model's multiply-adds in this time, over what the devices could have done (Chowdhery et
  /// al., arXiv 2204.02311, appendix B).
  std::optional<double> mfu{};
  // Of the ranks in the first process.
  std::optional<double> bubble{};           // part of their time in which they compute nothing
  std::optional<double> peak_bytes{};       // of the one that holds most
  std::map<std::string, double> waiting{};  // seconds of all of them by cause, where any
  std::string slow{};  // of all processes: which ranks are slow, and what that costs; empty: none
  friend bool operator==(const StepLine&, const StepLine&) = default;
};
/// Without the end of the line.
std::string to_line(const StepLine& step);
/// Nothing for what is no such line.
std::optional<StepLine> parse_step_line(std::string_view line);

/// A training goes on when its disk is full: what cannot be written is left out.
class StepLog {
 public:
  /// Adds to what an earlier part of the training has left in the folder.
  explicit StepLog(std::filesystem::path folder);

  void add(const StepLine& step);
  /// Writes last_step.trace.json anew, at most once a second: `timeline` is not called in between.
  void show(const std::function<plan::Timeline()>& timeline);
  /// There is a measured.trace.json now: last_step.trace.json goes.
  void end();

 private:
  std::filesystem::path folder_;
  std::ofstream lines_;
  std::optional<std::chrono::steady_clock::time_point> shown_;
};

/// Follows a steps.jsonl that somebody else writes.
class StepReader {
 public:
  explicit StepReader(std::filesystem::path file) : file_(std::move(file)) {}
  /// The steps that are new since the last call. A line that is still being written comes later;
  /// what is no step is skipped.
  std::vector<StepLine> next();

 private:
  std::filesystem::path file_;
  std::uintmax_t read_ = 0;
};

}  // namespace pipewright::loop
