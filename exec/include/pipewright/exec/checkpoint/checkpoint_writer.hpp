#pragma once

// Writes checkpoints on a thread of its own while training goes on, alone or as one part of
// several.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

/// A word that no other start of a job has drawn.
std::string new_job_id();

struct CheckpointOptions {
  /// Several processes may write one checkpoint: each is a part of it, and part 0 completes it. A
  /// tensor comes from one part, or in slices from several.
  int part = 0;
  int parts = 1;
  /// The same for all parts, and another whenever the job is started: drawn by part 0 and sent to
  /// the others. It tells a part from one that a killed job has left. May be empty with one part.
  std::string job{};
  int keep = 2;                 // newest whole checkpoints; older ones are removed
  plan::Seconds timeout{600};   // how long part 0 waits for the others
  double most_bytes_per_s = 0;  // that this part writes, where a folder is shared; 0: all it can
  /// Throws Aborted once the job has ended: part 0 asks while it waits for the others.
  std::function<void()> require_going{};
  std::function<void(const std::string&)> report{};  // of failures, on the writing thread
};

/// Writes checkpoints while training goes on. A write that fails never throws into training: its
/// temporary files are removed, the checkpoints before it stay, and the failure is told.
class CheckpointWriter {
 public:
  /// Removes what killed jobs have left of unfinished checkpoints. Throws InputError for options
  /// that cannot be, or a folder that cannot be made.
  CheckpointWriter(std::filesystem::path folder, CheckpointOptions options);
  /// Waits for the write under way, and with it for the other parts: `abandon` first when they
  /// have failed.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Starts to write and returns. One write is under way at most: a second save waits for the
  /// first and is never left out, as all parts must write the same steps.
  void save(Snapshot snapshot);
  /// Blocks until nothing is being written.
  void wait();
  /// Part 0 no longer waits for the other parts, now or later: they have failed.
  void abandon() { abandoned_ = true; }

  /// What went wrong with the last write that ended; nothing when all went well.
  std::optional<std::string> failure() const;
  /// The step of the last checkpoint that is on the disk; for other parts than 0 their files of it.
  std::optional<std::int64_t> written() const;

 private:
  void write(const Snapshot& snapshot);
  void write_to(const std::filesystem::path& unfinished, const Snapshot& snapshot);
  bool others_are_gone() const;
  void give_up(const std::filesystem::path& unfinished, const TrainingState& training,
               const std::string& why);

  std::filesystem::path folder_;
  CheckpointOptions options_;
  std::atomic<bool> abandoned_ = false;
  std::thread thread_;
  mutable std::mutex mutex_;  // of the two below
  std::optional<std::string> failure_;
  std::optional<std::int64_t> written_;
};

}  // namespace pipewright::exec
