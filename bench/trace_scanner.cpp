// Measures the benefit of the scanner in trace/src/chrome/object_list.hpp. A trace of torch's
// profiler is read alternately in pieces, as Pipewright does, and as a whole by simdjson alone;
// then the same with one damaged event in the middle.
//
//   pipewright_bench_trace_scanner [--trace-mb N] [--rounds N] [--folder FOLDER]

#include <fmt/format.h>
#include <simdjson.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <vector>

#include "chrome/chrome_file.hpp"
#include "support/large_timelines.hpp"
#include "support/temp_folder.hpp"

namespace {

using namespace pipewright;
namespace ondemand = simdjson::ondemand;

struct Reading {
  double seconds = 0;
  double memory = 0;  // bytes, at the peak
  std::uint64_t events = 0;
  std::uint64_t letters = 0;  // of the names, so that both readers must access them
};

double most_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:"))
      return std::stod(line.substr(6)) * 1024;
  return 0;
}

void read_in_pieces(const std::filesystem::path& file, Reading& reading) {
  std::vector<std::string> told;
  trace::ProblemList problems(told);
  trace::ChromeFile header{.name = file.string()};
  trace::ChromeEventParser parser;
  trace::read_chrome_file(file, header, problems, parser, [&](const trace::ChromeEvent& event) {
    ++reading.events;
    reading.letters += event.name.size();
  });
}

/// Reads the same fields of each event in the same way.
void read_as_a_whole(const std::filesystem::path& file, Reading& reading) {
  simdjson::padded_string text;
  ondemand::parser parser;
  ondemand::document document;
  ondemand::array events;
  if (simdjson::padded_string::load(file.string()).get(text) != simdjson::SUCCESS ||
      parser.iterate(text).get(document) != simdjson::SUCCESS ||
      document["traceEvents"].get_array().get(events) != simdjson::SUCCESS)
    return;
  for (auto element : events) {
    ondemand::object object;
    if (element.get_object().get(object) != simdjson::SUCCESS)
      return;
    std::size_t letters = 0;
    for (auto next : object) {
      ondemand::field field;
      if (std::move(next).get(field) != simdjson::SUCCESS)
        return;
      const ondemand::raw_json_string key = field.key();
      if (key == "name")
        letters = std::string_view(field.value().raw_json_token()).size();
      else if (key == "ts" || key == "dur")
        trace::parse_microseconds(field.value().raw_json_token());
    }
    ++reading.events;
    reading.letters += letters;
  }
}

/// Runs in its own process, so that its memory can be measured.
Reading measured(void (*read_file)(const std::filesystem::path&, Reading&),
                 const std::filesystem::path& file) {
  int ends[2];
  if (pipe(ends) != 0)
    throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    Reading reading;
    const double before = most_memory();
    const auto start = std::chrono::steady_clock::now();
    read_file(file, reading);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    reading.seconds = took.count();
    reading.memory = most_memory() - before;
    _exit(write(ends[1], &reading, sizeof reading) == sizeof reading ? 0 : 1);
  }
  Reading reading;
  const bool whole = read(ends[0], &reading, sizeof reading) == sizeof reading;
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
  if (!whole)
    throw std::runtime_error("the file was not read");
  return reading;
}

void compare(const char* what, const std::filesystem::path& file, int rounds) {
  std::vector<double> pieces, whole;
  Reading in_pieces, as_a_whole;
  for (int round = 0; round < rounds; ++round) {
    pieces.push_back((in_pieces = measured(read_in_pieces, file)).seconds);
    whole.push_back((as_a_whole = measured(read_as_a_whole, file)).seconds);
  }
  std::sort(pieces.begin(), pieces.end());
  std::sort(whole.begin(), whole.end());
  const auto print = [&](const char* how, const Reading& reading, double seconds) {
    fmt::print("{:<12}{:<14}{:>10}{:>10.3f}{:>10.1f}\n", what, how, reading.events, seconds,
               reading.memory / 1e6);
  };
  print("in pieces", in_pieces, pieces[pieces.size() / 2]);
  print("as a whole", as_a_whole, whole[whole.size() / 2]);
}

/// Writes a copy without a colon in the event in the middle.
void damage(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::ifstream in(from, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto middle = text.find("\"ph\"", text.size() / 2);
  text[middle + 4] = ' ';
  std::ofstream(to, std::ios::binary) << text;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times reading a trace in pieces and as a whole, alternately");
  std::uint64_t trace_mb = 350;
  int rounds = 5;
  std::string folder = std::filesystem::temp_directory_path();
  app.add_option("--trace-mb", trace_mb);
  app.add_option("--rounds", rounds);
  app.add_option("--folder", folder);
  CLI11_PARSE(app, argc, argv);

  const test::TempFolder files{std::filesystem::path(folder)};
  const auto whole = files.path() / "kineto.json", damaged = files.path() / "damaged.json";
  const pid_t child = fork();
  if (child == 0) {
    test::write_made_up_kineto(whole, trace_mb * 1'000'000);
    damage(whole, damaged);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  fmt::print("{:<12}{:<14}{:>10}{:>10}{:>10}\n", "trace", "read", "events", "s", "MB more");
  compare("sound", whole, rounds);
  compare("damaged", damaged, rounds);
}
