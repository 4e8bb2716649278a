#pragma once

// The options of the commands that need LibTorch. They run in a separate program, which loads it;
// the main program knows these options too, and forwards them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "options/scenario_options.hpp"

namespace pipewright::cli {

/// The devices on which ranks compute.
struct DeviceOptions {
  std::string device = "cpu";
  bool own_multiprocessors = false;

  bool on_gpu() const { return device == "cuda"; }
};

/// The time limits of ranks that wait for each other before the job fails.
struct TimeLimits {
  double timeout_s = 30;  // for a process without a sign of life
  double stall_s = 600;   // while no action ends; 0: unlimited
};

/// The log settings, as in exec::LogOptions.
struct LogWords {
  std::string subjects;
  std::string file;
};

struct RunOptions {
  ScenarioOptions scenario;
  DeviceOptions device;
  LogWords log;
  std::string costs;
  bool fresh = false;
  std::string out;
  bool verify = false;
  bool processes = false;
  TimeLimits limits;
};
Command describe_run(RunOptions& options);

struct ProfileOptions {
  ScenarioOptions scenario;
  DeviceOptions device;
  LogWords log;
  std::string out;
  std::string kernels;
  bool fresh = false;
  double over_s = -1;  // 0: until times are stable; -1: not given
  // Without over_s: means of 200 passes vary by a fourteenth of the passes' own variation.
  static constexpr double most_seconds = 60;
  static constexpr int enough_passes = 200;
  bool links = false;
  std::string between = "all";         // threads, processes
  double within_s = 20;                // time limit for measuring links
  std::string runtime = "pipewright";  // torch
  std::string python = "python3";
  TimeLimits limits;
};
Command describe_profile(ProfileOptions& options);

/// The options of `run`, and additional ones.
struct TrainOptions : RunOptions {
  std::string trace;
  std::string kernels;
  std::string checkpoints;
  std::string checkpoint_every;  // a number of steps, or auto
  double failure_hours = 0;
  int keep = 2;
  bool resume = false;
  bool dry_run = false;
  bool supervise = false;
  int tries = 3;
  bool replan = false;
  int spares = 0;  // places in addition to those that the ranks need
};
Command describe_train(TrainOptions& options);

struct SaveOptions {
  ScenarioOptions scenario;
  std::string checkpoints;
  std::string out;
};
Command describe_save(SaveOptions& options);

struct GenerateOptions {
  ScenarioOptions scenario;
  std::vector<std::string> tokens;  // of each prompt, separated by commas
  std::string checkpoints;
  int new_tokens = 32;
  double temperature = 0;
  int top_k = 0;
  std::optional<int> seed;
  std::vector<std::int64_t> stop;
};
Command describe_generate(GenerateOptions& options);

}  // namespace pipewright::cli
