#include "pipewright/sim/draws/draws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/all_cores.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/sim/draws/lane_simulator.hpp"
#include "pipewright/sim/network/shared_links.hpp"

namespace pipewright::sim {
namespace {

constexpr int most_draws = 100'000'000;

/// Samples iterations if no rank affects another's speed.
void draw_in_lanes(const LaneSimulator& simulator, std::uint64_t seed,
                   std::vector<double>& iterations) {
  const std::size_t at_once = simulator.at_once();
  on_all_cores((iterations.size() + at_once - 1) / at_once, [&](const auto& next) {
    LaneSimulator::Memory memory;
    for (auto part = next(); part; part = next()) {
      const std::size_t first = *part * at_once;
      const auto found = simulator.iterations(seed, first, memory);
      std::copy_n(found.begin(), std::min(at_once, iterations.size() - first),
                  iterations.begin() + static_cast<std::ptrdiff_t>(first));
    }
  });
}

/// Samples iterations with all pipelines on one clock.
void draw_together(const Structure& structure, const StepCosts& costs, const JobJitter& jitter,
                   std::uint64_t seed, std::vector<double>& iterations) {
  on_all_cores(iterations.size(), [&](const auto& next) {
    StepCosts own = costs;
    for (auto draw = next(); draw; draw = next()) {
      own.event_factors = jitter.event_factors(seed, *draw);
      iterations[*draw] = simulate_shared_links(structure, own).iteration;
    }
  });
}

}  // namespace

void require_usable(const SamplingOptions& options) {
  if (options.count < 1)
    throw plan::InputError(fmt::format("{} draws: at least 1 is needed", options.count));
  if (options.count > most_draws)
    throw plan::InputError(
        fmt::format("{} draws: at most {} are possible", options.count, most_draws));
}

Draws::Draws(std::vector<double> iterations) : sorted_(std::move(iterations)) {
  std::sort(sorted_.begin(), sorted_.end());
}

double Draws::mean() const {
  return std::accumulate(sorted_.begin(), sorted_.end(), 0.0) / static_cast<double>(sorted_.size());
}

double Draws::percentile(double fraction) const {
  const double rank = std::ceil(fraction * static_cast<double>(sorted_.size()));
  return sorted_[std::clamp(static_cast<std::size_t>(rank), std::size_t{1}, sorted_.size()) - 1];
}

std::vector<double> iterations_drawn(const Structure& structure, const StepCosts& costs,
                                     const JobJitter& jitter, const SamplingOptions& options) {
  require_usable(options);
  require_usable(costs, structure.program());
  std::vector<double> iterations(static_cast<std::size_t>(options.count));
  if (LaneSimulator::can_time(structure, costs))
    draw_in_lanes(LaneSimulator(structure, costs, jitter), options.seed, iterations);
  else
    draw_together(structure, costs, jitter, options.seed, iterations);
  return iterations;
}

Draws draw_iterations(const Structure& structure, const StepCosts& costs, const Jitter& jitter,
                      const SamplingOptions& options) {
  const JobJitter of_job(structure, costs.replicas, jitter);
  return Draws(iterations_drawn(structure, costs, of_job, options));
}

}  // namespace pipewright::sim
