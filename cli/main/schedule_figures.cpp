#include "schedule_figures.hpp"

#include <charconv>
#include <cmath>

#include "console.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/program/program_counts.hpp"
#include "pipewright/plan/schedules/schedule_counts.hpp"
#include "pipewright/sim/simulate.hpp"
#include "planning.hpp"

namespace pipewright::cli {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

double parse_time(const std::string& text, const char* what) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, bad] = std::from_chars(text.data(), end, value);
  if (bad != std::errc() || stop != end || !std::isfinite(value) || value < 0 || value > 1e12)
    throw plan::InputError(
        fmt::format("--costs: \"{}\" is no {} time: write a number from 0 to 1e12, or one a stage "
                    "separated by /",
                    text, what));
  return value;
}

std::vector<double> parse_list(const std::string& text, const char* what) {
  std::vector<double> list;
  for (const std::string& part : split(text, '/'))
    list.push_back(parse_time(part, what));
  return list;
}

void check_count(const std::vector<double>& list, int stages, const char* what) {
  if (list.size() != 1 && list.size() != static_cast<std::size_t>(stages))
    throw plan::InputError(fmt::format("--costs: {} {} times are given, but there are {} stages",
                                       list.size(), what, stages));
}

std::vector<plan::StageCost> stage_costs(const plan::ActionTimes& times, int stages) {
  check_count(times.forward, stages, "forward");
  check_count(times.input_gradient, stages, "input gradient");
  check_count(times.weight_gradient, stages, "weight gradient");
  std::vector<plan::StageCost> costs(static_cast<std::size_t>(stages));
  for (int stage = 0; stage < stages; ++stage) {
    plan::StageCost& cost = costs[static_cast<std::size_t>(stage)];
    cost.forward = {plan::ActionTimes::of(times.forward, stage)};
    cost.input_gradient = {plan::ActionTimes::of(times.input_gradient, stage)};
    cost.weight_gradient = {plan::ActionTimes::of(times.weight_gradient, stage)};
  }
  return costs;
}

}  // namespace

plan::ActionTimes parse_times(const std::string& text) {
  const auto parts = split(text, ',');
  if (parts.size() != 3 && parts.size() != 4)
    throw plan::InputError(
        fmt::format("--costs {}: write forward, input gradient, weight gradient and, if it is not "
                    "0, the transfer: 1,1,1 or 1,1,1,0.1",
                    text));
  plan::ActionTimes times;
  times.forward = parse_list(parts[0], "forward");
  times.input_gradient = parse_list(parts[1], "input gradient");
  times.weight_gradient = parse_list(parts[2], "weight gradient");
  if (parts.size() == 4)
    times.transfer = parse_time(parts[3], "transfer");
  return times;
}

plan::Timeline timed(const plan::Program& program, const plan::ActionTimes& times) {
  plan::Cluster cluster;
  cluster.devices_per_node = static_cast<int>(program.ranks.size());
  cluster.within_node.latency = {times.transfer};
  const auto outcome =
      sim::simulate(program, stage_costs(times, plan::stage_count(program)), cluster);
  if (const auto* deadlock = std::get_if<sim::Deadlock>(&outcome))
    throw plan::Infeasible(deadlock->cycle);
  return std::get<sim::Completed>(outcome).timeline;
}

plan::Json figures(const plan::Schedule& schedule, const plan::Program& program,
                   const plan::Timeline& timeline) {
  plan::Json bubble = plan::Json::array();
  for (const plan::Seconds b : plan::bubble_per_rank(timeline))
    bubble.push_back(b.value);
  return {{"iteration_time", timeline.length.value},
          {"longest_stage_span", plan::longest_span(timeline).value},
          {"bubble", bubble},
          {"peak_activations", plan::peak_activations(schedule)},
          {"memory_units", plan::peak_memory_units(schedule)},
          {"weight_versions", plan::weight_versions(program)},
          {"slots", plan::slot_counts(program)},
          {"receive_slots", plan::receive_slots(program)}};
}

}  // namespace pipewright::cli
