// Measures how long it takes to open large timelines, and how much memory they need: ten million
// events in a native file, and 350 MB written by torch's profiler, also gzipped.
//
//   pipewright_bench_timeline_files [--events N] [--trace-mb N] [--folder FOLDER] [--json]

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "pipewright/plan/timeline/event_file.hpp"
#include "pipewright/trace/chrome/chrome_trace.hpp"
#include "pipewright/trace/files/timeline_file.hpp"
#include "support/large_timelines.hpp"
#include "support/temp_folder.hpp"

namespace {

using namespace pipewright;

/// Returns a value of /proc/self/status, in bytes.
double memory(const std::string& figure) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(figure + ":"))
      return std::stod(line.substr(figure.size() + 1)) * 1024;
  return 0;
}

struct Opening {
  double seconds = 0;
  double of_cpu = 0;  // CPU seconds: the same on an idle machine
  double events = 0;
  double resident = 0;  // bytes more than before, when it is open
  double most = 0;      // the same, at the peak
};

/// Runs in its own process, so that its memory can be measured.
template <class Open>
Opening measure(const Open& open) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0)
    throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    const double before = memory("VmRSS");
    const double cpu_before = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    const auto start = std::chrono::steady_clock::now();
    const plan::EventTable table = open();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const double of_cpu = static_cast<double>(std::clock()) / CLOCKS_PER_SEC - cpu_before;
    const Opening opening{took.count(), of_cpu, static_cast<double>(table.size()),
                          memory("VmRSS") - before, memory("VmHWM") - before};
    const bool whole = write(pipe_ends[1], &opening, sizeof opening) == sizeof opening;
    _exit(whole ? 0 : 1);
  }
  Opening opening;
  const bool whole = read(pipe_ends[0], &opening, sizeof opening) == sizeof opening;
  int status = 0;
  waitpid(child, &status, 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  if (!whole || status != 0)
    throw std::runtime_error("the file was not opened");
  return opening;
}

nlohmann::json to_json(const Opening& opening, double file_bytes) {
  return {{"file_mb", file_bytes / 1e6},
          {"events", opening.events},
          {"open_s", opening.seconds},
          {"cpu_s", opening.of_cpu},
          {"resident_bytes_per_event", opening.resident / opening.events},
          {"most_bytes_per_event", opening.most / opening.events}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times the opening of large timelines");
  std::uint64_t events = 10'000'000;
  std::uint64_t trace_mb = 350;
  int ranks = 64;
  std::string folder = std::filesystem::temp_directory_path();
  bool json = false;
  app.add_option("--events", events);
  app.add_option("--ranks", ranks);
  app.add_option("--trace-mb", trace_mb);
  app.add_option("--folder", folder);
  app.add_flag("--json", json);
  CLI11_PARSE(app, argc, argv);

  const test::TempFolder files{std::filesystem::path(folder)};
  const auto native = files.path() / "native.pwt";
  const auto trace = files.path() / "kineto.json";
  const auto gzipped = files.path() / "kineto.json.gz";
  // Child processes make the files, so that this does not count in the measurement.
  const auto apart = [](const auto& make) {
    const pid_t child = fork();
    if (child == 0) {
      make();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0)
      throw std::runtime_error("the file was not made");
  };
  apart([&] { plan::write_event_file(native, test::made_up_events(events, ranks)); });
  apart([&] { test::write_made_up_kineto(trace, trace_mb * 1'000'000); });
  apart([&] {
    if (std::system(("gzip -1 -k " + trace.string()).c_str()) != 0)
      _exit(1);
  });

  const auto foreign = [](const std::filesystem::path& file) {
    return measure([&] {
      std::vector<std::string> problems;
      plan::EventTable table = trace::read_timeline_file(file, problems);
      if (!problems.empty())
        throw std::runtime_error(problems.front());
      return table;
    });
  };
  nlohmann::json answer;
  answer["native"] = to_json(measure([&] { return plan::read_event_file(native); }),
                             static_cast<double>(std::filesystem::file_size(native)));
  answer["trace"] = to_json(foreign(trace), static_cast<double>(std::filesystem::file_size(trace)));
  answer["gzipped"] =
      to_json(foreign(gzipped), static_cast<double>(std::filesystem::file_size(gzipped)));
  if (json) {
    fmt::print("{}\n", answer.dump(2));
    return 0;
  }
  fmt::print("{:<10}{:>10}{:>12}{:>10}{:>10}{:>16}{:>16}\n", "file", "MB", "events", "open s",
             "CPU s", "B/event open", "B/event most");
  for (const auto& [name, figures] : answer.items())
    fmt::print("{:<10}{:>10.1f}{:>12.0f}{:>10.3f}{:>10.3f}{:>16.1f}{:>16.1f}\n", name,
               figures["file_mb"].get<double>(), figures["events"].get<double>(),
               figures["open_s"].get<double>(), figures["cpu_s"].get<double>(),
               figures["resident_bytes_per_event"].get<double>(),
               figures["most_bytes_per_event"].get<double>());
}
