// Measures how long a large schedule takes from its sizes to a proved Program: generation,
// lowering, and validation with the proof that it does not deadlock. Prints one JSON line, to be
// compared with bench/torch_schedule.py.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/program/validate_program.hpp"

namespace {

using namespace pipewright::plan;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Times {
  double generate, lower, validate;
  double total() const { return generate + lower + validate; }
};

}  // namespace

int main(int argc, char** argv) {
  int ranks = 64, microbatches = 1024, chunks = 4, rounds = 5;
  CLI::App app("Times interleaved-1f1b from sizes to a proved Program");
  app.add_option("--ranks", ranks);
  app.add_option("--microbatches", microbatches);
  app.add_option("--chunks", chunks);
  app.add_option("--rounds", rounds);
  CLI11_PARSE(app, argc, argv);

  std::vector<Times> times;
  std::size_t actions = 0, instructions = 0;
  for (int round = 0; round < rounds; ++round) {
    auto start = Clock::now();
    const Schedule schedule = make_interleaved_1f1b(ranks, microbatches, chunks);
    Times now{.generate = seconds_since(start), .lower = 0, .validate = 0};
    start = Clock::now();
    const Program program = lower(schedule);
    now.lower = seconds_since(start);
    start = Clock::now();
    validate(program);
    now.validate = seconds_since(start);
    times.push_back(now);
    actions = instructions = 0;
    for (const auto& list : schedule.ranks)
      actions += list.size();
    for (const auto& list : program.ranks)
      instructions += list.size();
  }
  std::sort(times.begin(), times.end(),
            [](const Times& a, const Times& b) { return a.total() < b.total(); });
  const Times& median = times[times.size() / 2];
  fmt::print(
      "{{\"program\": \"pipewright\", \"ranks\": {}, \"microbatches\": {}, \"chunks\": {}, "
      "\"actions\": {}, \"instructions\": {}, \"generate_s\": {:.4f}, \"lower_s\": {:.4f}, "
      "\"validate_s\": {:.4f}, \"total_s\": {:.4f}}}\n",
      ranks, microbatches, chunks, actions, instructions, median.generate, median.lower,
      median.validate, median.total());
}
