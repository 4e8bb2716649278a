#pragma once

// What a device did, as whoever watches it tells: values of our own, whatever library they are
// from. Where the CPU computes, its operators are told in the same way.

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace pipewright::profiler {

/// An instant by the clock of who watches.
using Nanoseconds = std::uint64_t;

enum class RecordKind : std::uint8_t {
  Kernel,  // work: of a device, or an operator on the CPU
  Copy,    //
  Set,     // of memory to a value
  Call,    // of the host, that asked for such work
  Label,   // says under which label a call was made
};
constexpr bool is_work(RecordKind kind) { return kind <= RecordKind::Set; }

/// A stream. Those of each context are numbered apart, and a GPU that is divided has several.
struct StreamId {
  std::uint32_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  friend auto operator<=>(const StreamId&, const StreamId&) = default;
};

struct GpuRecord {
  RecordKind kind = RecordKind::Kernel;
  std::uint32_t name = 0;  // into Activity::names
  std::uint32_t device = 0;
  std::uint32_t context = 0;      // of work, within the device
  std::uint32_t stream = 0;       // of work, within the context; of the CPU's, the thread
  std::uint32_t thread = 0;       // of a call, the system's number; says nothing of whose it is
  std::uint32_t correlation = 0;  // the same of a call, its label and the work that it asked for
  std::uint64_t label = 0;        // of a Label, and of work that knows its own; 0: none
  Nanoseconds start = 0;          // of work that the device could not time, both are 0
  Nanoseconds end = 0;
  std::int64_t bytes = -1;  // moved; -1: not told
  friend bool operator==(const GpuRecord&, const GpuRecord&) = default;
};

inline StreamId stream_of(const GpuRecord& work) {
  return {work.device, work.context, work.stream};
}

/// All that was recorded of a while.
struct Activity {
  std::vector<std::string> names;
  std::vector<GpuRecord> records;     // in any order
  std::uint64_t dropped = 0;          // records for which there was no room
  std::uint64_t unread = 0;           // bytes that could not be read as records
  std::uint64_t late_buffers = 0;     // allocated while the work went on, which holds it up
  std::uint64_t missing_buffers = 0;  // that had not come back when this was collected
};

}  // namespace pipewright::profiler
