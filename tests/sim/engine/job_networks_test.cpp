#include <fmt/format.h>

#include <memory>
#include <numeric>
#include <random>

#include "pipewright/plan/error.hpp"
#include "pipewright/sim/engine/job_simulator.hpp"
#include "pipewright/sim/network/shared_links.hpp"
#include "pipewright/sim/simgrid/simgrid.hpp"
#include "sim/support/equal_ranks.hpp"
#include "sim/support/random_costs.hpp"
#include "sim/support/two_nodes.hpp"
#include "support/catch.hpp"
#include "support/make_schedule.hpp"
#include "support/skip.hpp"

namespace job_networks_test {

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  int between(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }
  double between(double least, double most) {
    return std::uniform_real_distribution(least, most)(random_);
  }
  bool often(double share) { return between(0.0, 1.0) < share; }
  std::mt19937& random() { return random_; }

  Link link() {
    Link link{.latency = {between(0.0, 0.5)}, .bandwidth_per_s = between(20.0, 200.0)};
    if (often(0.3))
      link.segments = {{.from = {20}, .time = {between(0.6, 1.0)}, .bandwidth_per_s = 50}};
    if (often(0.3)) {
      link.collective_bandwidth_per_s = between(20.0, 100.0);
      link.collective_latency = {between(0.0, 0.2)};
    }
    return link;
  }

  /// Returns up to three levels in addition to the one between nodes, each of whole groups of the
  /// one before.
  Fabric fabric(int nodes) {
    Fabric fabric;
    for (int group = between(1, 2); group < nodes && fabric.levels.size() < 3;
         group *= between(2, 3)) {
      LinkLevel& level = fabric.levels.emplace_back(fmt::format("level {}", group), group, link());
      level.link.oversubscription = often(0.5) ? between(1.0, 7.0) : 1;
    }
    fabric.rails = !fabric.levels.empty() && often(0.4);
    return fabric;
  }

  Mixture mixture(int nodes) {
    Mixture mixture;
    for (int left = nodes; left > 0;) {
      const int own = between(1, left);
      mixture.kinds.push_back({.nodes = own, .device = {}, .speed = between(0.3, 2.0)});
      left -= own;
    }
    return mixture;
  }

 private:
  std::mt19937 random_;
};

/// Returns devices by rank, replica and tensor-parallel rank: adjacent are those of a rank, or of a
/// pipeline.
std::vector<int> places(int ranks, int copies, int shards, bool by_pipeline) {
  std::vector<int> devices(static_cast<std::size_t>(ranks * copies * shards));
  std::iota(devices.begin(), devices.end(), 0);
  if (by_pipeline)
    for (int rank = 0; rank < ranks; ++rank)
      for (int member = 0; member < copies * shards; ++member)
        devices[static_cast<std::size_t>(rank * copies * shards + member)] =
            member / shards * ranks * shards + rank * shards + member % shards;
  return devices;
}

/// A Program and a job on a cluster of nodes of several kinds, with links of several levels.
struct Job {
  std::unique_ptr<const Structure> structure;
  StepCosts costs;
};

Job drawn(Draw& draw, const std::string& schedule, int round) {
  const int ranks = draw.between(2, 4), copies = draw.between(1, 4), shards = draw.between(1, 2);
  const auto ways = all_ways_to_communicate();
  LoweringOptions options = ways[static_cast<std::size_t>(round) % ways.size()];
  options.replicas = copies;
  options.share_loss = true;
  if (copies == 1)
    options.zero = 0;
  Job job{
      .structure = std::make_unique<Structure>(lower(make(schedule, ranks, 2 * ranks), options)),
      .costs = {}};
  job.costs = random_costs(job.structure->program(), draw.random(), round);
  StepCosts& costs = job.costs;
  costs.jitter = 0;
  costs.replicas = copies;
  costs.shards = shards;
  costs.devices = places(ranks, copies, shards, draw.often(0.5));
  const int devices = ranks * copies * shards;
  costs.cluster.devices_per_node = draw.between(1, 4);
  costs.cluster.nodes = (devices - 1) / costs.cluster.devices_per_node + 1 + draw.between(0, 2);
  costs.cluster.within_node = draw.link();
  costs.cluster.between_nodes = draw.link();
  costs.cluster.fabric = draw.fabric(costs.cluster.nodes);
  if (draw.often(0.7))
    costs.cluster.mixture = draw.mixture(costs.cluster.nodes);
  return job;
}

/// Returns the times of the first device of each rank, as engines with a clock do.
Times of_first(const Structure& structure, const JobTimes& times) {
  Times first{.iteration = times.iteration(), .events = {}};
  for (int event = 0; event < structure.size(); ++event)
    first.events.push_back(times.of(event, 0));
  return first;
}

struct Agreement {
  int jobs = 0, on_levels = 0, mixed = 0;
  double largest = 0;  // difference, in iteration times
};

template <class Engine>
Agreement agreement_of(unsigned seed, int rounds, const Engine& engine) {
  Draw draw(seed);
  Agreement found;
  int round = 0;
  for (int turn = 0; turn < rounds; ++turn)
    for (const std::string& schedule : schedule_names()) {
      CAPTURE(schedule, round);
      ++round;
      try {
        const Job job = drawn(draw, schedule, round);
        JobSimulator simulator(*job.structure);
        const Times own = of_first(*job.structure, simulator.run(job.costs));
        const double difference =
            largest_difference(own, engine(*job.structure, job.costs)) / own.iteration;
        CAPTURE(job.costs.replicas, job.costs.shards, job.costs.cluster.nodes,
                job.costs.cluster.devices_per_node, job.costs.cluster.fabric->levels.size(),
                job.costs.cluster.fabric->rails, job.costs.cluster.mixture.has_value());
        CHECK(difference <= 1e-9);
        found.largest = std::max(found.largest, difference);
        found.on_levels += job.costs.cluster.fabric->levels.size() > 1 ? 1 : 0;
        found.mixed += job.costs.cluster.mixture ? 1 : 0;
        ++found.jobs;
      } catch (const InputError&) {  // sizes that the schedule does not support
      } catch (const Infeasible&) {  // a deadlock
      }
    }
  return found;
}

TEST_CASE(
    "Simulating each device separately gives the times of flows on a network of several levels",
    "[sim][job_simulator]") {
  const Agreement found =
      agreement_of(1, 20, [](const Structure& structure, const StepCosts& costs) {
        return simulate_shared_links(structure, costs, DeviceTimes::Own);
      });
  CHECK(found.jobs > 100);
  CHECK(found.on_levels > 40);
  CHECK(found.mixed > 60);
}

TEST_CASE("A rank is as slow as the slowest of its devices and of their links, for few or many",
          "[sim][job_simulator]") {
  Draw draw(3);
  for (const int copies : {3, 40, 90}) {
    const Structure structure(lower(make("interleaved-1f1b", 4, 8), {.replicas = copies}));
    StepCosts costs = random_costs(structure.program(), draw.random(), 0);
    costs.replicas = copies;
    costs.cluster.nodes = 4 * copies;
    costs.cluster.devices_per_node = 1;
    costs.cluster.between_nodes = draw.link();
    costs.cluster.fabric = {.levels = {{"leaf", 3, draw.link()}, {"spine", 9, draw.link()}}};
    costs.cluster.mixture = draw.mixture(costs.cluster.nodes);
    Durations durations;
    durations.fill(structure, costs);
    for (int event = 0; event < structure.size(); ++event) {
      const Instruction& i = *structure.events()[event].instruction;
      if (is_collective(i.kind))
        continue;
      double longest = 0;
      for (int member = 0; member < copies; ++member) {
        const EventCost own = cost_of_member(structure, costs, event, member);
        longest = std::max(longest, own.held + own.latency);
      }
      const EventCost& cost = durations.of(structure, event);
      REQUIRE(cost.held + cost.latency == longest);
    }
  }
}

TEST_CASE("SimGrid gives separately simulated devices the same times on levels and kinds",
          "[sim][job_simulator][simgrid]") {
  if (!built_with_simgrid())
    skip("built without SimGrid");
  const Agreement found =
      agreement_of(2, 10, [](const Structure& structure, const StepCosts& costs) {
        return simulate_on_simgrid(structure, costs, {}, DeviceTimes::Own);
      });
  CHECK(found.jobs > 30);
  fmt::print(
      "SimGrid and every device by itself agree on {} jobs, {} with several outer levels and "
      "{} of several kinds; largest difference {:.1e}\n",
      found.jobs, found.on_levels, found.mixed, found.largest);
}

}  // namespace job_networks_test
