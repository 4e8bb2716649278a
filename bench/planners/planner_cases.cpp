#include "planners/planner_cases.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "pipewright/plan/error.hpp"
#include "pipewright/search/partitioners/replicated_partition.hpp"
#include "planners/calculon_search.hpp"
#include "planners/piper_search.hpp"

namespace pipewright::planners {
namespace {

/// Returns half a unit of the last decimal.
double rounding_of(const std::string& number) {
  const auto point = number.find('.');
  const auto decimals = point == std::string::npos ? 0 : number.size() - point - 1;
  return 0.5 * std::pow(10, -static_cast<double>(decimals));
}

template <class Number>
Number number_or_zero(const std::string& cell) {
  return cell.empty() ? Number{} : static_cast<Number>(std::stod(cell));
}

PlannerCase case_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');)
    cells.push_back(cell);
  if (cells.size() != 9)
    throw plan::InputError(fmt::format("{} cells instead of 9: {}", cells.size(), line));
  return {.planner = cells[0],
          .input = cells[1],
          .memory_gib = number_or_zero<double>(cells[2]),
          .devices = number_or_zero<int>(cells[3]),
          .microbatches = number_or_zero<int>(cells[4]),
          .bandwidth_per_s = number_or_zero<double>(cells[5]),
          .optimum = number_or_zero<double>(cells[6]),
          .rounding = rounding_of(cells[6]),
          .unit = cells[7],
          .seconds = number_or_zero<double>(cells[8])};
}

}  // namespace

std::string PlannerCase::name() const {
  std::string text = fmt::format("{}, {} devices", input, devices);
  if (planner == "piper")
    text += fmt::format(" of {} GiB, {} microbatches", memory_gib, microbatches);
  return text;
}

std::vector<PlannerCase> read_planner_cases(const std::filesystem::path& folder) {
  std::ifstream stream(folder / "optima.csv");
  if (!stream)
    throw plan::InputError(fmt::format("{}/optima.csv cannot be read", folder.string()));
  std::vector<PlannerCase> cases;
  std::string line;
  std::getline(stream, line);  // column names
  while (std::getline(stream, line))
    cases.push_back(case_of(line));
  return cases;
}

double planner_answer(const PlannerCase& input, const std::filesystem::path& folder) {
  if (input.planner == "pipedream") {
    const auto graph = search::without_ends(search::read_profile_graph(folder / input.input));
    return search::replicated_partition(graph, {.levels = {{input.devices, input.bandwidth_per_s}}})
        .slowest_stage.value;
  }
  if (input.planner == "piper") {
    auto problem = read_piper_problem(folder / input.input);
    problem.memory_bytes = input.memory_gib * 1024 * 1024 * 1024;
    problem.bandwidth_per_s = input.bandwidth_per_s;
    problem.devices = input.devices;
    problem.microbatches = input.microbatches;
    return piper_plan(problem).seconds_per_sample;
  }
  return calculon_best(read_calculon_model(folder / input.input),
                       read_calculon_machine(folder / "calculon-a100-80g.json"),
                       {.devices = input.devices,
                        .most_batch = input.microbatches,
                        .stops_at_microbatch = true})
      .samples_per_s;
}

}  // namespace pipewright::planners
