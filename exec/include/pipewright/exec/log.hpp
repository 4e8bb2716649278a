#pragma once

// Logging for finding faults, by subject and level, to stderr or to one file per rank. Every line
// has the time, the rank of its thread and the instruction that the rank is executing.

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::exec {

enum class LogSubject { Job, Schedule, Transfers, Collectives, Data, Checkpoints };
/// Info: events that occur once a step or less often. Debug: each instruction, transfer and read.
enum class LogLevel { Off, Info, Debug };

struct LogOptions {
  /// Subjects with their levels, such as "job=debug,transfers". "all" stands for every subject, and
  /// a subject without a level has level info. Later entries override earlier ones. Empty: logging
  /// is off.
  std::string subjects;
  /// File to append to. "{rank}" in it becomes the rank of the line's thread, or "job" for a thread
  /// without a rank. Empty: stderr.
  std::string file;
};

/// Returns the options in PIPEWRIGHT_LOG and PIPEWRIGHT_LOG_FILE, which apply from the start of the
/// process until `set_log`. If they are invalid, the reason is printed to stderr and logging is
/// off.
LogOptions log_options_from_environment();

/// Sets the options of the whole process. Throws InputError for an unknown subject or level, with a
/// list of the known ones, and for a file that cannot be opened.
void set_log(const LogOptions& options);

/// Returns true if lines of this subject and level are written. Costs one memory load.
bool logs(LogSubject subject, LogLevel level);

/// Writes one line without mixing it with lines of other threads and processes.
void write_log(LogSubject subject, LogLevel level, std::string_view text);

template <class... Arguments>
void log(LogSubject subject, LogLevel level, fmt::format_string<Arguments...> text,
         Arguments&&... arguments) {
  if (logs(subject, level))
    write_log(subject, level, fmt::format(text, std::forward<Arguments>(arguments)...));
}

/// Does the same with a text that is only built if it is written.
template <std::invocable Text>
void log(LogSubject subject, LogLevel level, const Text& text) {
  if (logs(subject, level))
    write_log(subject, level, text());
}

/// Set the rank, the step and the instruction of this thread's further lines.
void log_as_rank(int rank);
void log_in_step(int step);
void log_at(const plan::Instruction& instruction);

}  // namespace pipewright::exec
