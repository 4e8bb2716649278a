#pragma once

// Reads the trace of a whole training job, with all workers in one file: a list of Chrome trace
// events. The process is the data-parallel rank, the thread is one of a worker's five rows, and
// metadata give its stage. One worker runs one stage of one replica; of the ranks that partition
// the stage (tensor or sequence parallel) only the first is recorded.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "pipewright/trace/straggler/job_operation.hpp"

namespace pipewright::trace {

/// The layout of workers. They are numbered like their global ranks: the stage varies slowest, then
/// the replica.
struct JobLayout {
  int replicas = 0;
  int stages = 0;  // ranks per pipeline
  int chunks = 1;  // model stages per rank
  /// Number of tensor × sequence parallel ranks of a worker; the trace does not say which of the
  /// two.
  int ranks_per_worker = 1;

  int workers() const { return replicas * stages; }
  int worker(int replica, int stage) const { return stage * replicas + replica; }
  int replica_of(int worker) const { return worker % replicas; }
  int stage_of(int worker) const { return worker / replicas; }
  int global_rank(int worker) const { return worker * ranks_per_worker; }
  int world_size() const { return workers() * ranks_per_worker; }
};

struct JobEvent {
  JobOperation operation = JobOperation::Forward;
  int worker = 0;
  int step = 0;        // index in JobTrace::steps
  int chunk = 0;       // -1 if the trace does not say
  double begin = 0;    // seconds; may be negative: machines have different clocks
  double seconds = 0;  // of communication, the transfer alone without the wait for other ranks; may
                       // be negative if the trace's clocks were corrected
  double end() const { return begin + seconds; }
};

struct JobTrace {
  std::string file;
  JobLayout layout;
  std::vector<int> steps;        // step numbers, ascending; a sample of the training's steps
  std::vector<JobEvent> events;  // sorted by step, worker, operation and begin
  std::size_t left_out = 0;      // number of events with unknown names or without a step
  std::size_t negative = 0;      // number of events with a negative duration, used as recorded
  double least_s = 0;            // the most negative one
};

/// Returns true if one of the file's first events belongs to such a job: a known operation with a
/// step, or a thread called "PP rank 0, TP rank 0, compute". Returns false if the file is not a
/// Chrome trace.
bool is_job_trace(const std::filesystem::path& file);

/// Reads the trace, also gzipped. Damaged events are skipped and listed in `problems`. Throws
/// InputError that names file, thread and value if the stage of a thread is not given, a worker has
/// no events, numbers are not valid ranks, or a duration is more negative than corrected clocks
/// explain; MalformedFile if the file is not a trace.
JobTrace read_job_trace(const std::filesystem::path& file, std::vector<std::string>& problems);

/// Returns the trace with only these steps, given by number. Throws InputError if one does not
/// exist.
JobTrace with_steps(JobTrace trace, const std::vector<int>& numbers);

}  // namespace pipewright::trace
