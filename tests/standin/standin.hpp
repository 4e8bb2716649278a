#pragma once

// What the stand-ins for NVIDIA's libraries tell each other. Each is a shared library with the name
// of the real one, loaded before it (LD_PRELOAD) in tests alone; that for CUDA's runtime has these
// functions beside NVIDIA's, and the others find them with dlsym(RTLD_DEFAULT, name).

#include <cstddef>
#include <cstdint>

extern "C" {

/// What a stream of the stand-in was given: a kernel, a copy, a set of memory, a host function.
struct PipewrightStandinWork {
  enum Kind : std::int32_t { Kernel, Copy, Set, HostFunction };
  Kind kind;
  const char* call;  // of the API, such as "cudaMemcpyAsync"; lives as long as the process
  const char* name;  // of the kernel; lives as long as the process
  std::int32_t device;
  std::uint32_t stream;     // 1, 2, … in the order in which streams were made; 0: the default one
  std::uint64_t bytes;      // of copies and sets
  std::int32_t copy_kind;   // a cudaMemcpyKind
  std::uint64_t called_ns;  // CLOCK_REALTIME: when the call began and returned, and the work
  std::uint64_t returned_ns;
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  std::uint32_t thread;  // the system's number of the thread that called
};

/// Calls `listener` on the thread that gave the work, once it is done. Null: nobody.
void pipewright_standin_listen(void (*listener)(const PipewrightStandinWork* work));

/// Says that what this stream is given next reads or writes memory, for the check of
/// happens-before. `what` lives as long as the process. `stream` is a cudaStream_t.
void pipewright_standin_access(void* stream, const void* memory, std::size_t bytes, int writes,
                               const char* what);

/// What was found wrong since the last call, a line each, cut to `size`: uses that nothing orders,
/// memory that is given free before its use, kernels that nothing computes. Who does not take it
/// ends with exit code 66.
void pipewright_standin_take_reports(char* text, std::size_t size);

}  // extern "C"
