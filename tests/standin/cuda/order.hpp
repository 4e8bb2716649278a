#pragma once

// A race detector: vector clocks over the stand-in's streams, and the last write and reads of each
// range of memory. Two accesses that are not ordered, one of them a write, are a race.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace standin {

/// For each stream, by number, the count of its works that are known to be done.
using Clock = std::vector<std::uint64_t>;

struct Access {
  const void* memory = nullptr;
  std::size_t bytes = 0;
  bool writes = false;
  const char* what = "";  // the operation's name; lives as long as the process
};

/// Checks the next work of stream `number`, which comes after all that the host has waited for.
/// `own` is the stream's clock. Reports races.
void come_to_work(std::uint32_t number, Clock& own, const std::vector<Access>& accesses);
/// Makes a stream wait for a point of another one.
void merge(Clock& own, const Clock& other);
/// Records that a host thread has waited for this point. All threads count as informed, because
/// synchronization between them is not visible.
void host_has_waited(const Clock& point);
/// Records that memory is free from here on, in the order of the stream on which it was allocated.
/// Reports a free before a use if another use is not known to be done.
void come_to_free(std::uint32_t number, const Clock& own, const void* memory, std::size_t bytes);
/// Forgets the uses of memory that is no longer used.
void forget(const void* memory, std::size_t bytes);

/// Reports an error, also to stderr. The process ends with `exit_code_of_reports` unless the
/// reports are taken.
void report(const std::string& text);
std::string take_reports();
constexpr int exit_code_of_reports = 66;

}  // namespace standin
