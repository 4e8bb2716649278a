#pragma once

// Writes checkpoints on a background thread while training continues, alone or as one part of
// several processes.

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

/// Returns a random word that identifies one start of a job.
std::string new_job_id();

struct CheckpointOptions {
  /// The part of the checkpoint that this process writes. Several processes may write one
  /// checkpoint, one part each; part 0 completes it. A tensor is written by one part, or in slices
  /// by several.
  int part = 0;
  int parts = 1;
  /// Identifies this start of the job: part 0 draws it and sends it to the others. It distinguishes
  /// a part from one left behind by a killed job. May be empty with one part.
  std::string job{};
  int keep = 2;                 // number of complete checkpoints to keep; older ones are removed
  plan::Seconds timeout{600};   // how long part 0 waits for the other parts
  double most_bytes_per_s = 0;  // write rate of this part, for shared storage; 0: unlimited
  /// Throws Aborted once the job has ended. Part 0 calls it while it waits for the others.
  std::function<void()> require_going{};
  std::function<void(const std::string&)> report{};  // called with failures, on the writing thread
};

/// Writes checkpoints while training continues. A failed write never throws into the training: its
/// temporary files are removed, earlier checkpoints remain, and the failure is reported.
class CheckpointWriter {
 public:
  /// Removes unfinished checkpoints of killed jobs. Throws InputError for impossible options, or if
  /// the folder cannot be created.
  CheckpointWriter(std::filesystem::path folder, CheckpointOptions options);
  /// Blocks until the current write has ended, which waits for the other parts. Call `abandon`
  /// first if they have failed.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Starts to write and returns. Only one write runs at a time: a second save blocks until the
  /// first has ended. It is never skipped, because all parts must write the same steps.
  void save(Snapshot snapshot);
  /// Blocks until no write is running.
  void wait();
  /// Makes part 0 stop waiting for the other parts, now and later, because they have failed.
  void abandon() { abandoned_ = true; }

  /// Returns why the last finished write failed; nothing if it succeeded.
  std::optional<std::string> failure() const;
  /// Returns the step of the last checkpoint that is on the disk; for parts other than 0, of their
  /// last files.
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
  mutable std::mutex mutex_;  // protects the two members below
  std::optional<std::string> failure_;
  std::optional<std::int64_t> written_;
};

}  // namespace pipewright::exec
