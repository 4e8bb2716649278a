#pragma once

// The interface between the stand-ins for NVIDIA's libraries. Each is a shared library with the
// name of the real one, loaded before it (LD_PRELOAD) in tests only. The stand-in for CUDA's
// runtime has these functions in addition to NVIDIA's; the others find them with
// dlsym(RTLD_DEFAULT, name).

#include <cstddef>
#include <cstdint>

extern "C" {

/// A piece of work of a stand-in's stream: a kernel, a copy, a memory set or a host function.
struct PipewrightStandinWork {
  enum Kind : std::int32_t { Kernel, Copy, Set, HostFunction };
  Kind kind;
  const char* call;  // API call such as "cudaMemcpyAsync"; lives as long as the process
  const char* name;  // kernel's name; lives as long as the process
  std::int32_t device;
  std::uint32_t stream;     // 1, 2, … in the order of creation; 0 is the default stream
  std::uint64_t bytes;      // of copies and memory sets
  std::int32_t copy_kind;   // a cudaMemcpyKind
  std::uint64_t called_ns;  // CLOCK_REALTIME; the call's start and end, then the work's
  std::uint64_t returned_ns;
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  std::uint32_t thread;  // the system's number of the calling thread
};

/// Calls `listener` for each work when it is done, on the thread that did it. Null stops that.
void pipewright_standin_listen(void (*listener)(const PipewrightStandinWork* work));

/// Records that the next work of this stream reads or writes memory, for the race detector. `what`
/// lives as long as the process. `stream` is a cudaStream_t.
void pipewright_standin_access(void* stream, const void* memory, std::size_t bytes, int writes,
                               const char* what);

/// Writes the errors found since the last call, one per line, cut to `size`: accesses that are not
/// ordered, memory that is freed before its use, kernels without a stand-in. A process with errors
/// that are not taken ends with exit code 66.
void pipewright_standin_take_reports(char* text, std::size_t size);

}  // extern "C"
