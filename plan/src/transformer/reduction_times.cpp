#include "reduction_times.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace pipewright::plan {
namespace {

/// The rows of a table for one number of ranks, or for the nearest that it has.
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

/// Bytes that each device sends for each byte that is summed.
double ring_share(double ranks) { return 2 * (ranks - 1) / ranks; }

/// Between the measured sizes as a line in logarithms; below them as the smallest.
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

SumTime sum_time(const Cluster& cluster, int ranks, double bytes, int groups, bool spans) {
  if (ranks < 2)
    return {};
  if (spans)
    return {.network_s =
                ring_share(ranks) * bytes * groups / cluster.between_nodes.bandwidth_per_s};
  if (cluster.machine && !cluster.machine->reductions.empty())
    return from_table(cluster.machine->reductions, ranks, bytes);
  const Link& link = cluster.within_node;
  return {.table_s = ring_share(ranks) * bytes / (0.8 * link.bandwidth_per_s) +
                     2 * (ranks - 1) * link.latency.value};
}

}  // namespace pipewright::plan
