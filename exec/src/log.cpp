#include "pipewright/exec/log.hpp"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <vector>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

constexpr std::array<std::string_view, 6> subject_names{"job",         "schedule", "transfers",
                                                        "collectives", "data",     "checkpoints"};
constexpr std::array<std::string_view, 3> level_names{"off", "info", "debug"};

using Levels = std::array<LogLevel, subject_names.size()>;

template <std::size_t count>
std::size_t index_of(const char* what, const std::array<std::string_view, count>& names,
                     const std::string& name, std::vector<std::string> more = {}) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end())
    return static_cast<std::size_t>(found - names.begin());
  more.insert(more.end(), names.begin(), names.end());
  throw plan::InputError(fmt::format("\"{}\" is not a {} of the log{} (possible: {})", name, what,
                                     plan::did_you_mean(name, more), fmt::join(more, ", ")));
}

Levels levels_of(const std::string& subjects) {
  Levels levels{};
  std::istringstream entries(subjects);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const auto equals = entry.find('=');
    const std::string subject = entry.substr(0, equals);
    LogLevel level = LogLevel::Info;
    if (equals != std::string::npos)
      level = static_cast<LogLevel>(index_of("level", level_names, entry.substr(equals + 1)));
    if (subject == "all")
      levels.fill(level);
    else
      levels[index_of("subject", subject_names, subject, {"all"})] = level;
  }
  return levels;
}

struct Place {
  std::optional<int> rank;
  int step = -1;
  std::optional<plan::Instruction> instruction;
};
thread_local Place own_place;

std::string now() {
  const auto time = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  const auto fraction = std::chrono::duration_cast<std::chrono::microseconds>(
      time.time_since_epoch() % std::chrono::seconds(1));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     fraction.count());
}

std::string in_words(const Place& where) {
  if (!where.rank)
    return "";
  if (where.step < 0)
    return fmt::format(" rank {}", *where.rank);
  if (!where.instruction)
    return fmt::format(" rank {} step {}", *where.rank, where.step);
  return fmt::format(" rank {} step {} {}", *where.rank, where.step,
                     plan::to_string(*where.instruction));
}

/// The destination of log lines. Files stay open until the log's options are set again.
class Sink {
 public:
  explicit Sink(std::string file) : file_(std::move(file)) {}
  ~Sink() {
    for (const auto& [name, descriptor] : open_)
      ::close(descriptor);
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  /// Writes a line in one call, so that lines of several processes do not mix. Ignores failed
  /// writes.
  void write(const std::string& line) {
    const int descriptor = descriptor_of(own_place.rank ? fmt::to_string(*own_place.rank) : "job");
    if (descriptor >= 0) [[maybe_unused]]
      const auto written = ::write(descriptor, line.data(), line.size());
  }

  /// Returns the file of a rank. Throws InputError if it cannot be opened.
  int descriptor_of(const std::string& rank) {
    if (file_.empty())
      return STDERR_FILENO;
    std::string name = file_;
    if (const auto at = name.find("{rank}"); at != std::string::npos)
      name.replace(at, 6, rank);
    const auto [known, is_new] = open_.try_emplace(name, -1);
    if (is_new)
      known->second = ::open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (known->second < 0)
      throw plan::InputError(
          fmt::format("the log file {} cannot be opened: {}", name, std::strerror(errno)));
    return known->second;
  }

 private:
  std::string file_;
  std::map<std::string, int> open_;
};

struct Log {
  Log() {
    try {
      set(log_options_from_environment());
    } catch (const plan::InputError& error) {
      const std::string line = fmt::format("PIPEWRIGHT_LOG: {}\n", error.what());
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
    }
  }

  void set(const LogOptions& options) {
    const Levels wanted = levels_of(options.subjects);
    auto fresh = std::make_unique<Sink>(options.file);
    if (options.file.find("{rank}") == std::string::npos)
      fresh->descriptor_of("");
    const std::lock_guard lock(mutex);
    sink = std::move(fresh);
    for (std::size_t s = 0; s < levels.size(); ++s)
      levels[s] = wanted[s];
  }

  std::array<std::atomic<LogLevel>, subject_names.size()> levels{};
  std::mutex mutex;
  std::unique_ptr<Sink> sink;
};

Log& the_log() {
  static Log log;
  return log;
}

}  // namespace

LogOptions log_options_from_environment() {
  const auto value = [](const char* variable) {
    const char* const text = std::getenv(variable);
    return std::string(text == nullptr ? "" : text);
  };
  return {value("PIPEWRIGHT_LOG"), value("PIPEWRIGHT_LOG_FILE")};
}

void set_log(const LogOptions& options) { the_log().set(options); }

bool logs(LogSubject subject, LogLevel level) {
  return level <=
         the_log().levels[static_cast<std::size_t>(subject)].load(std::memory_order_relaxed);
}

void write_log(LogSubject subject, LogLevel level, std::string_view text) {
  const std::string line = fmt::format("{}{} [{} {}] {}\n", now(), in_words(own_place),
                                       subject_names[static_cast<std::size_t>(subject)],
                                       level_names[static_cast<std::size_t>(level)], text);
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  try {
    log.sink->write(line);
  } catch (const plan::InputError&) {
    // A log that cannot be written must not end a training.
  }
}

void log_as_rank(int rank) { own_place.rank = rank; }
void log_in_step(int step) {
  own_place.step = step;
  own_place.instruction.reset();
}
void log_at(const plan::Instruction& instruction) { own_place.instruction = instruction; }

}  // namespace pipewright::exec
