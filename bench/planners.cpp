// Compares our searches with other planners on their own inputs and under their own rules: the
// results and the times, as rows of tests/data/planners/optima.csv.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "planners/calculon_search.hpp"
#include "planners/planner_cases.hpp"

namespace {

using namespace pipewright::planners;
using Clock = std::chrono::steady_clock;

struct Measured {
  double answer = 0;
  double seconds = 0;  // the median round
};

Measured measure(const PlannerCase& input, const std::filesystem::path& folder, int rounds) {
  Measured measured;
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    measured.answer = planner_answer(input, folder);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
  measured.seconds = seconds[static_cast<std::size_t>(rounds / 2)];
  return measured;
}

void print(const PlannerCase& input, const Measured& measured, bool as_json) {
  const double loss = input.loss(measured.answer);
  if (as_json)
    fmt::print("{}\n", nlohmann::ordered_json{{"planner", input.planner},
                                              {"input", input.name()},
                                              {"answer", measured.answer},
                                              {"optimum", input.optimum},
                                              {"unit", input.unit},
                                              {"no_worse", loss <= input.tolerance()},
                                              {"seconds", measured.seconds},
                                              {"their_seconds", input.seconds}}
                           .dump());
  else
    fmt::print(
        "{:<60} {:>12.9g} {:<24} {:<8} {:8.4f} s, theirs {:8.3f} s: {:6.0f} times\n", input.name(),
        measured.answer, input.unit,
        loss > input.tolerance() ? "worse" : (loss < -input.tolerance() ? "better" : "equal"),
        measured.seconds, input.seconds, input.seconds / measured.seconds);
}

/// Searches Calculon's whole space for GPT-3 on 64 A100: no microbatch size is skipped.
void print_space(const std::filesystem::path& folder) {
  const auto start = Clock::now();
  const auto best = calculon_best(read_calculon_model(folder / "calculon-gpt3-175b.json"),
                                  read_calculon_machine(folder / "calculon-a100-80g.json"),
                                  {.devices = 64, .most_batch = 64});
  fmt::print("{} executions, {} possible, best {:.9g} samples/s, {:.2f} s\n", best.executions,
             best.possible, best.samples_per_s,
             std::chrono::duration<double>(Clock::now() - start).count());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compares our searches with those of other planners");
  std::filesystem::path folder = PIPEWRIGHT_PLANNER_DATA;
  int rounds = 3;
  bool as_json = false;
  app.add_option("--folder", folder, "folder with optima.csv and its inputs");
  app.add_option("--rounds", rounds, "rounds of each search")->check(CLI::PositiveNumber);
  app.add_flag("--json", as_json, "print a line of JSON for each");
  bool space = false;
  app.add_flag("--space", space, "search Calculon's whole space for GPT-3 on 64 devices instead");
  CLI11_PARSE(app, argc, argv);
  if (space) {
    print_space(folder);
    return 0;
  }

  bool no_worse = true;
  for (const PlannerCase& input : read_planner_cases(folder)) {
    const Measured measured = measure(input, folder, rounds);
    print(input, measured, as_json);
    no_worse = no_worse && input.loss(measured.answer) <= input.tolerance();
  }
  return no_worse ? 0 : 1;
}
