#include "pipewright/plan/cluster/collective_times.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace pipewright::plan {
namespace {

/// The rows of a table for one number of ranks, or for the nearest number that the table has.
struct Rows {
  std::size_t begin = 0, end = 0;
};

Rows rows_of(const ReductionTable& table, int ranks) {
  const auto distance = [&](std::size_t row) { return std::abs(table.ranks[row] - ranks); };
  std::size_t best = 0;
  for (std::size_t row = 0; row < table.ranks.size(); ++row)
    if (distance(row) < distance(best))
      best = row;
  Rows rows{best, best};
  while (rows.end < table.ranks.size() && table.ranks[rows.end] == table.ranks[best])
    ++rows.end;
  return rows;
}

/// Returns the bytes that each device sends per byte of an all-reduce over a ring.
double ring_share(double ranks) { return 2 * (ranks - 1) / ranks; }

/// Returns the bandwidth of the outermost level that the group spans, in bytes per second of a
/// node.
double outer_bandwidth(const Cluster& cluster, const GroupPlace& place) {
  const Link& link = link_of_level(cluster, std::max<std::size_t>(1, place.level));
  return link.bandwidth_per_s / link.oversubscription;
}

constexpr double ring_efficiency = 0.8;  // of a link's bandwidth, if no table is given

double between_nodes_s(const SumTime& sum, const MachineConstants& constants) {
  return std::max(sum.network_s / constants.network_efficiency, sum.inside_s);
}

/// Interpolates linearly in logarithms between the measured sizes. Smaller sizes take the time of
/// the smallest.
SumTime from_table(const ReductionTable& table, int ranks, double bytes) {
  const Rows rows = rows_of(table, ranks);
  const double scale = ring_share(ranks) / ring_share(table.ranks[rows.begin]);
  const auto size = [&](std::size_t row) { return std::log(table.bytes[row]); };
  const auto time = [&](std::size_t row) { return std::log(table.seconds[row]); };
  const std::size_t last = rows.end - 1;
  if (bytes > table.bytes[last])
    return {.bulk_s =
                bytes * table.seconds[last] / (table.bytes[last] * ring_share(table.ranks[last]))};
  std::size_t above = rows.begin;
  while (table.bytes[above] < bytes)
    ++above;
  if (above == rows.begin)
    return {.table_s = scale * table.seconds[above]};
  const double at = (std::log(bytes) - size(above - 1)) / (size(above) - size(above - 1));
  return {.table_s = scale * std::exp(time(above - 1) + at * (time(above) - time(above - 1)))};
}

}  // namespace

GroupPlace place_of(const Cluster& cluster, const std::vector<int>& devices) {
  GroupPlace place{.devices = static_cast<int>(devices.size())};
  if (devices.empty())
    return place;
  for (std::size_t i = 0; i < devices.size(); ++i)
    place.level = std::max(place.level,
                           level_between(cluster, devices[i], devices[(i + 1) % devices.size()]));
  const int node = node_of(cluster, devices.front());
  const auto here = std::count_if(devices.begin(), devices.end(),
                                  [&](int device) { return node_of(cluster, device) == node; });
  place.spans = here < std::ssize(devices);
  place.beside = place.spans ? std::max(1, cluster.devices_per_node / static_cast<int>(here)) : 1;
  return place;
}

SumTime operator*(const SumTime& sum, double times) {
  return {.table_s = sum.table_s * times,
          .bulk_s = sum.bulk_s * times,
          .network_s = sum.network_s * times,
          .inside_s = sum.inside_s * times,
          .steps_s = sum.steps_s * times};
}

SumTime sum_time(const Cluster& cluster, const GroupPlace& place, double bytes) {
  if (place.devices < 2)
    return {};
  if (place.spans)
    return {.network_s =
                ring_share(place.devices) * bytes * place.beside / outer_bandwidth(cluster, place),
            .inside_s = ring_share(place.devices) * bytes /
                        (ring_efficiency * cluster.within_node.bandwidth_per_s)};
  if (cluster.machine && !cluster.machine->reductions.empty())
    return from_table(cluster.machine->reductions, place.devices, bytes);
  const Link& link = cluster.within_node;
  return {.table_s = ring_share(place.devices) * bytes / (ring_efficiency * link.bandwidth_per_s),
          .steps_s = ring_steps_s(cluster, place)};
}

double ring_steps_s(const Cluster& cluster, const GroupPlace& place) {
  const int of_node = std::max(1, cluster.devices_per_node / place.beside);
  const int nodes = place.spans ? (place.devices + of_node - 1) / of_node : 1;
  const Link& outer = link_of_level(cluster, std::max<std::size_t>(1, place.level));
  return 2 * ((place.devices - nodes) * cluster.within_node.latency.value +
              (nodes - 1) * outer.latency.value);
}

ExchangeTime exchange_time(const Cluster& cluster, const GroupPlace& place, double sent) {
  if (place.devices < 2)
    return {};
  if (!place.spans)
    return {.node_s = sent / cluster.within_node.bandwidth_per_s};
  return {.network_s = sent * cluster.devices_per_node / outer_bandwidth(cluster, place)};
}

double gradient_sum_s(const SumTime& sum, const MachineConstants& constants) {
  return sum.table_s / constants.reduction_efficiency +
         sum.bulk_s / constants.large_reduction_efficiency + between_nodes_s(sum, constants) +
         sum.steps_s;
}

double shard_sum_s(const SumTime& sum, const MachineConstants& constants) {
  return sum.table_s + sum.bulk_s + between_nodes_s(sum, constants) + sum.steps_s +
         constants.collective_call_s;
}

double exchanges_s(const ExchangeTime& sent, int exchanges, const MachineConstants& constants) {
  return sent.node_s / constants.all_to_all_efficiency +
         sent.network_s / constants.network_efficiency + exchanges * constants.collective_call_s;
}

}  // namespace pipewright::plan
