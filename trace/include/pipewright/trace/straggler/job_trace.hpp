#pragma once

// The trace of a whole training job, all workers in one file: a list of Chrome trace events whose
// process is the data-parallel rank, whose thread is one of a worker's five rows, and whose
// metadata say of which stage. One worker runs one stage of one replica; of the ranks that share
// out its stage (tensor, sequence) only the first is recorded.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "pipewright/trace/straggler/job_operation.hpp"

namespace pipewright::trace {

/// Who is where. Workers are numbered as their global ranks: stages slowest, then replicas.
struct JobLayout {
  int replicas = 0;
  int stages = 0;  // ranks of a pipeline
  int chunks = 1;  // stages of the model on each of them
  /// tensor × sequence parallel ranks of a worker; the trace does not say which.
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
  int step = 0;        // its place in JobTrace::steps
  int chunk = 0;       // -1 where the trace tells none
  double begin = 0;    // seconds; may be below 0: clocks of different machines
  double seconds = 0;  // of communication the transfer alone, without the wait for others
  double end() const { return begin + seconds; }
};

struct JobTrace {
  std::string file;
  JobLayout layout;
  std::vector<int> steps;        // their numbers, rising; a sample of the training's
  std::vector<JobEvent> events;  // by step, worker, operation and begin
  std::size_t left_out = 0;      // events of other names, or without a step
};

/// Whether one of the file's first events is of such a job: an operation of it with a step, or a
/// thread "PP rank 0, TP rank 0, compute". False of what is no Chrome trace.
bool is_job_trace(const std::filesystem::path& file);

/// Reads it, also gzipped. Events that are damaged are left out and go into `problems`. Throws
/// InputError that names file, thread and value where the stage of a thread is not told, where a
/// worker has no events, and where numbers are none of ranks; MalformedFile for what is no trace.
JobTrace read_job_trace(const std::filesystem::path& file, std::vector<std::string>& problems);

/// Those steps alone, by their numbers. Throws InputError for one that is not there.
JobTrace with_steps(JobTrace trace, const std::vector<int>& numbers);

}  // namespace pipewright::trace
