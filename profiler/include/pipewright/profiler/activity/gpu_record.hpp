#pragma once

// Records of a device's activity, independent of the library that recorded them. Operators on the
// CPU are recorded in the same form.

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace pipewright::profiler {

/// A time of the recorder's clock.
using Nanoseconds = std::uint64_t;

enum class RecordKind : std::uint8_t {
  Kernel,  // work of a device, or an operator on the CPU
  Copy,    //
  Set,     // sets memory to a value
  Call,    // a host call that submitted such work
  Label,   // the label under which a call was made
};
constexpr bool is_work(RecordKind kind) { return kind <= RecordKind::Set; }

/// A stream. Streams are numbered within their context, and a GPU that is divided has several
/// contexts.
struct StreamId {
  std::uint32_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  friend auto operator<=>(const StreamId&, const StreamId&) = default;
};

struct GpuRecord {
  RecordKind kind = RecordKind::Kernel;
  std::uint32_t name = 0;  // index into Activity::names
  std::uint32_t device = 0;
  std::uint32_t context = 0;  // of work, within the device
  std::uint32_t stream = 0;   // of work, within the context; the thread for work of the CPU
  // The system's thread number, for a call. It does not identify a rank.
  std::uint32_t thread = 0;
  std::uint32_t correlation = 0;  // equal for a call, its label and the work that it submitted
  // The label of a Label, and of work that has one; otherwise 0.
  std::uint64_t label = 0;
  Nanoseconds start = 0;  // start and end are 0 for work that the device could not time
  Nanoseconds end = 0;
  std::int64_t bytes = -1;  // moved; -1 if unknown
  friend bool operator==(const GpuRecord&, const GpuRecord&) = default;
};

inline StreamId stream_of(const GpuRecord& work) {
  return {work.device, work.context, work.stream};
}

/// All records of an interval.
struct Activity {
  std::vector<std::string> names;
  std::vector<GpuRecord> records;  // in any order
  std::uint64_t dropped = 0;       // records lost for lack of room
  std::uint64_t unread = 0;        // bytes that could not be read as records
  std::uint64_t late_buffers = 0;  // buffers allocated during the work, which delays it
  // Buffers that CUPTI had not returned when records were collected.
  std::uint64_t missing_buffers = 0;
};

}  // namespace pipewright::profiler
