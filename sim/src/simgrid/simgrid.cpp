#include "pipewright/sim/simgrid/simgrid.hpp"

#include <fmt/format.h>

#include <fstream>
#include <limits>

#include "network/replay.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "simgrid/child_process.hpp"
#include "simgrid/simgrid_networks.hpp"

namespace pipewright::sim {
namespace {

/// Returns the costs without those that a platform file decides: transfers and collectives.
StepCosts without_links(StepCosts costs) {
  for (plan::Link* const link : plan::links_of(costs.cluster))
    *link = {.latency = {},
             .bandwidth_per_s = std::numeric_limits<double>::infinity(),
             .overheads = link->overheads};
  costs.measured.reset();
  return costs;
}

// Values passed from the child process: the iteration, then three times per event.
std::vector<double> to_numbers(const Times& times) {
  std::vector<double> numbers{times.iteration};
  for (const EventTimes& event : times.events)
    numbers.insert(numbers.end(), {event.start, event.released, event.end});
  return numbers;
}

Times times_from(const std::vector<double>& numbers) {
  Times times{.iteration = numbers.at(0), .events = {}};
  for (std::size_t i = 1; i + 2 < numbers.size(); i += 3)
    times.events.push_back({numbers[i], numbers[i + 1], numbers[i + 2]});
  return times;
}

}  // namespace

bool built_with_simgrid() { return true; }

Times simulate_on_simgrid(const Structure& structure, const StepCosts& costs,
                          const std::filesystem::path& platform_file, DeviceTimes device_times) {
  require_usable(costs, structure.program());
  if (!costs.contended.empty())
    throw plan::InputError(fmt::format(
        "SimGrid cannot express ranks that slow each other down, and these costs have "
        "times with {} busy cores of a node (busy_cores). Use the native engine, or costs "
        "without contended times",
        costs.busy_cores));
  const bool has_file = !platform_file.empty();
  if (has_file && std::ifstream(platform_file).peek() == std::ifstream::traits_type::eof())
    throw plan::InputError(fmt::format("{}: cannot be read, or is empty", platform_file.string()));

  // SimGrid ends the process if it rejects its input, and can be started only once in a process.
  return times_from(in_child_process([&] {
    const StepCosts own = has_file ? without_links(costs) : costs;
    Replay replay(structure, own, device_times,
                  has_file ? LinkTimes::OfNetwork : LinkTimes::OfCluster);
    Traffic traffic = replay.traffic();
    traffic.seconds = Simulator(structure).iteration(own);
    const auto network =
        has_file ? network_of(platform_file, traffic) : network_of(costs.cluster, traffic);
    return to_numbers(replay.run(*network));
  }));
}

}  // namespace pipewright::sim
