#pragma once

// What goes on inside, for those who look for a fault: by subject and level, to stderr or to a file
// for each rank. Every line says the time, the rank of its thread and the instruction that this is
// at.

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::exec {

enum class LogSubject { Job, Schedule, Transfers, Collectives, Data, Checkpoints };
/// Info: what happens once a step or seldom. Debug: each instruction, transfer and reading.
enum class LogLevel { Off, Info, Debug };

struct LogOptions {
  /// Subjects with their levels, such as "job=debug,transfers"; "all" is each of them, and a
  /// subject without a level has info. Later ones hold. Empty: nothing is logged.
  std::string subjects;
  /// A file that lines are added to, in which "{rank}" is the rank of the line's thread, or "job"
  /// where it is none's. Empty: stderr.
  std::string file;
};

/// What the environment says: PIPEWRIGHT_LOG and PIPEWRIGHT_LOG_FILE. It holds from the start of
/// the process until `set_log`; what it says wrongly is told on stderr, and nothing is logged then.
LogOptions log_options_from_environment();

/// For the whole process. Throws InputError for a subject or level that there is not, naming those
/// that there are, and for a file that cannot be opened.
void set_log(const LogOptions& options);

/// Whether such lines are written; costs a load.
bool logs(LogSubject subject, LogLevel level);

/// One line, which is whole among those of other threads and processes.
void write_log(LogSubject subject, LogLevel level, std::string_view text);

template <class... Arguments>
void log(LogSubject subject, LogLevel level, fmt::format_string<Arguments...> text,
         Arguments&&... arguments) {
  if (logs(subject, level))
    write_log(subject, level, fmt::format(text, std::forward<Arguments>(arguments)...));
}

/// The same of a text that is made only where it is written.
template <std::invocable Text>
void log(LogSubject subject, LogLevel level, const Text& text) {
  if (logs(subject, level))
    write_log(subject, level, text());
}

/// Further lines of this thread are those of a rank of the job, in this step, at this instruction.
void log_as_rank(int rank);
void log_in_step(int step);
void log_at(const plan::Instruction& instruction);

}  // namespace pipewright::exec
