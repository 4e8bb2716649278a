#pragma once

// What comes before what: vector clocks over the streams of the stand-in, and for each piece of
// memory who wrote and who read it last. Two accesses, one of them a write, that nothing orders are
// a race.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace standin {

/// By stream's number: up to which of its works.
using Clock = std::vector<std::uint64_t>;

struct Access {
  const void* memory = nullptr;
  std::size_t bytes = 0;
  bool writes = false;
  const char* what = "";  // does it; lives as long as the process
};

/// What one stream is given next, after all that the host has waited for. `own`: the clock of the
/// stream `number`. What it races with is reported.
void come_to_work(std::uint32_t number, Clock& own, const std::vector<Access>& accesses);
/// The stream waits for a point of another one.
void merge(Clock& own, const Clock& other);
/// A thread of the host has waited for this point. All threads know it: how they tell each other is
/// not seen.
void host_has_waited(const Clock& point);
/// The memory may be given to others from here on, in the order of the stream that it was made on:
/// who else has used it and is not known to be done is reported as a free before a use.
void come_to_free(std::uint32_t number, const Clock& own, const void* memory, std::size_t bytes);
/// Nobody uses it any more.
void forget(const void* memory, std::size_t bytes);

/// Also to stderr, and the process ends with `exit_code_of_reports` unless they are taken.
void report(const std::string& text);
std::string take_reports();
constexpr int exit_code_of_reports = 66;

}  // namespace standin
