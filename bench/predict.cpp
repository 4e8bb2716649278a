// Times the whole prediction of a scenario from C++, as the commands make it. bench/python.py
// compares Python's time with it. Prints one JSON line: the median of several rounds.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include "pipewright/loop/predict/predicted_plan.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace {

using namespace pipewright;
using Clock = std::chrono::steady_clock;

}  // namespace

int main(int argc, char** argv) {
  std::string scenario_file, costs_file;
  int rounds = 3;
  CLI::App app{"Times the prediction of a scenario"};
  app.add_option("scenario", scenario_file)->required();
  app.add_option("costs", costs_file)->required();
  app.add_option("--rounds", rounds);
  CLI11_PARSE(app, argc, argv);
  const auto scenario = plan::scenario_from_json(plan::JsonDocument::read(scenario_file));
  const auto costs = plan::layer_costs_from_json(plan::JsonDocument::read(costs_file));
  std::vector<double> seconds;
  std::size_t instructions = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    const auto predicted = loop::predicted_plan(scenario, costs);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    instructions = 0;
    for (const auto& rank : predicted.plan.program().ranks)
      instructions += rank.size();
  }
  std::ranges::nth_element(seconds, seconds.begin() + rounds / 2);
  fmt::print("{{\"instructions\": {}, \"seconds\": {:.6f}}}\n", instructions,
             seconds[static_cast<std::size_t>(rounds / 2)]);
}
