#include "pipewright/loop/record/link_report.hpp"

#include <algorithm>
#include <cmath>

#include "pipewright/plan/statistics.hpp"

namespace pipewright::loop {
namespace {

/// Returns true if the time of a transfer is dominated by its bytes and not by its latency. An
/// absolute size alone would not do, because on a slow link even the largest measured size may be
/// small.
bool is_large(const plan::LinkSample& sample, const plan::LinkSeries& series) {
  constexpr plan::Bytes always{1 << 20};
  constexpr double times_the_least = 100;
  return sample.size >= always || sample.time > series.samples.front().time * times_the_least;
}

/// Returns the times of `series` over those of `other` at the same sizes, for the samples of
/// `other` that `counts` accepts.
template <class Counts>
std::vector<double> ratios(const plan::LinkSeries& series, const plan::LinkSeries& other,
                           const Counts& counts) {
  std::vector<double> found;
  for (const plan::LinkSample& sample : series.samples)
    for (const plan::LinkSample& alone : other.samples)
      if (alone.size == sample.size && counts(alone))
        found.push_back(sample.time / alone.time);
  return found;
}

/// Returns the median ratio of the times to those of one direction, over large transfers.
std::optional<double> beside_one_way(const plan::LinkSeries& series,
                                     const plan::LinkSeries& one_way) {
  const auto found =
      ratios(series, one_way, [&](const auto& alone) { return is_large(alone, one_way); });
  return found.empty() ? std::nullopt : std::optional(plan::median(found));
}

/// Returns the share of a tensor-parallel all-reduce that concurrent compute hides, as the median
/// over sizes; 0 if it was not measured.
double tensor_parallel_overlap(const plan::LinkSeries& beside, const plan::LinkSeries& alone) {
  auto hidden =
      ratios(beside, alone, [](const auto& other) { return other.time > plan::Seconds{}; });
  for (double& share : hidden)
    share = std::clamp(1 - share, 0.0, 1.0);
  return hidden.empty() ? 0 : plan::median(hidden);
}

void add_ring_steps(const plan::LinkSeries& sums, int ranks, std::vector<plan::LinkSample>& to) {
  constexpr int rounds = 2;  // an all-reduce is a reduce-scatter and an all-gather
  for (const plan::LinkSample& ring : sums.samples)
    to.push_back(plan::ring_step(ring, ranks, rounds));
}

/// Returns the ring steps of all-reduces over 2, 3, … ranks.
std::vector<plan::LinkSample> ring_steps(const std::vector<plan::LinkSeries>& sums) {
  std::vector<plan::LinkSample> steps;
  for (std::size_t s = 0; s < sums.size(); ++s)
    add_ring_steps(sums[s], static_cast<int>(s) + 2, steps);
  return steps;
}

plan::Overhead sum_overhead(const plan::LinkSeries& sums) {
  std::vector<plan::LinkSample> steps;
  add_ring_steps(sums, 2, steps);
  return plan::fit_overhead(steps);
}

plan::Json fit_json(const plan::LinkFit& fit) {
  std::vector<double> sizes;
  double worst = 0;
  for (const double residual : fit.residuals) {
    sizes.push_back(std::abs(residual));
    worst = std::max(worst, sizes.back());
  }
  plan::Json segments = plan::Json::array();
  for (const plan::LinkSegment& segment : fit.link.segments)
    segments.push_back({{"from_bytes", segment.from.value},
                        {"time_s", segment.time.value},
                        {"bandwidth_per_s", segment.bandwidth_per_s}});
  return {{"latency_s", fit.link.latency.value},
          {"bandwidth_per_s", fit.link.bandwidth_per_s},
          {"segments", std::move(segments)},
          {"median_residual", plan::median(sizes)},
          {"worst_residual", worst}};
}

plan::Json series_json(const plan::LinkSeries& series, const std::vector<double>& residuals,
                       std::size_t first) {
  plan::Json samples = plan::Json::array();
  for (std::size_t s = 0; s < series.samples.size(); ++s) {
    const plan::LinkSample& sample = series.samples[s];
    samples.push_back({{"bytes", sample.size.value},
                       {"seconds", sample.time.value},
                       {"spread", sample.spread},
                       {"repeats", sample.repeats}});
    if (first + s < residuals.size())
      samples.back()["residual"] = residuals[first + s];
  }
  return {{"samples", std::move(samples)}, {"ended", series.ended}};
}

/// Returns the samples of all-reduces over 2, 3, … ranks.
plan::Json sums_json(const std::vector<plan::LinkSeries>& sums,
                     const std::optional<plan::LinkFit>& fit) {
  plan::Json all = plan::Json::array();
  std::size_t first = 0;
  for (std::size_t s = 0; s < sums.size(); ++s) {
    all.push_back(series_json(sums[s], fit ? fit->residuals : std::vector<double>{}, first));
    all.back()["ranks"] = s + 2;
    first += sums[s].samples.size();
  }
  return all;
}

}  // namespace

MeasuredLink measured_link(const plan::LinkSamples& samples) {
  MeasuredLink link;
  link.samples = samples;
  link.fit = plan::fit_link(samples.one_way.samples);
  link.link = link.fit.link;
  if (samples.computing) {
    link.computing = plan::slowed_down(link.fit.link, samples.computing->arrival.samples);
    link.link = link.computing->link;
    link.link.overheads = {plan::fit_overhead(samples.computing->sender.samples),
                           plan::fit_overhead(samples.computing->receiver.samples),
                           sum_overhead(samples.computing->sum)};
  }
  if (const auto steps = ring_steps(samples.sums); !steps.empty()) {
    link.sums = plan::fit_link(steps);
    const plan::Link& ring = link.sums->link;
    link.link.collective_latency = ring.latency;
    link.link.collective_bandwidth_per_s = ring.bandwidth_per_s;
    link.link.collective_segments = ring.segments;
  }
  if (const auto steps = ring_steps(samples.tensor_parallel_sums); !steps.empty()) {
    link.tensor_parallel_sums = plan::fit_link(steps);
    const plan::Link& ring = link.tensor_parallel_sums->link;
    link.link.tensor_parallel_latency = ring.latency;
    link.link.tensor_parallel_bandwidth_per_s = ring.bandwidth_per_s;
    link.link.tensor_parallel_segments = ring.segments;
    link.link.tensor_parallel_overlap = tensor_parallel_overlap(
        samples.tensor_parallel_sums_during_compute, samples.tensor_parallel_sums.front());
  }
  link.both_ways = beside_one_way(samples.both_ways, samples.one_way);
  for (std::size_t s = 0; s < samples.at_once.size(); ++s)
    if (const auto slow_down = beside_one_way(samples.at_once[s], samples.one_way))
      link.sharing.push_back({static_cast<int>(s) + 2, *slow_down});
  for (const LinkSharing& sharing : link.sharing)
    if (decides_sharing(samples, sharing))
      link.link.shared = sharing.slow_down > (1.0 + sharing.pairs) / 2;
  return link;
}

bool decides_sharing(const plan::LinkSamples& samples, const LinkSharing& sharing) {
  return samples.most_pairs == 0 || sharing.pairs <= samples.most_pairs;
}

std::string name_of(const plan::LinkSamples& samples) {
  return samples.over + (samples.between_nodes ? ", between nodes" : ", within a node");
}

plan::Cluster with_links(plan::Cluster cluster, const std::vector<MeasuredLink>& links) {
  for (const MeasuredLink& link : links)
    (link.samples.between_nodes ? cluster.between_nodes : cluster.within_node) = link.link;
  const bool apart = std::any_of(links.begin(), links.end(), [](const MeasuredLink& link) {
    return link.samples.between_nodes;
  });
  if (apart)
    cluster.nodes = std::max(cluster.nodes, 2);
  return cluster;
}

plan::Json to_json(const MeasuredLink& link) {
  const plan::LinkSamples& samples = link.samples;
  plan::Json json{{"over", samples.over},
                  {"between_nodes", samples.between_nodes},
                  {"fit", fit_json(link.fit)},
                  {"shared", link.link.shared},
                  {"one_way", series_json(samples.one_way, link.fit.residuals, 0)},
                  {"both_ways", series_json(samples.both_ways, {}, 0)},
                  {"at_once", plan::Json::array()}};
  if (link.computing) {
    json["computing"] = {
        {"arrival", series_json(samples.computing->arrival, link.computing->residuals, 0)},
        {"sender", series_json(samples.computing->sender, {}, 0)},
        {"receiver", series_json(samples.computing->receiver, {}, 0)},
        {"sum", series_json(samples.computing->sum, {}, 0)}};
    json["computing"]["arrival"]["fit"] = fit_json(*link.computing);
  }
  if (link.both_ways)
    json["both_ways"]["slow_down"] = *link.both_ways;
  for (std::size_t s = 0; s < samples.at_once.size(); ++s) {
    json["at_once"].push_back(series_json(samples.at_once[s], {}, 0));
    json["at_once"].back()["pairs"] = s + 2;
  }
  for (const LinkSharing& sharing : link.sharing)
    json["at_once"][static_cast<std::size_t>(sharing.pairs) - 2]["slow_down"] = sharing.slow_down;
  if (link.sums)
    json["sum_fit"] = fit_json(*link.sums);
  if (link.tensor_parallel_sums)
    json["shard_sum_fit"] = fit_json(*link.tensor_parallel_sums);
  json["sums"] = sums_json(samples.sums, link.sums);
  json["tensor_parallel_sums"] = sums_json(samples.tensor_parallel_sums, link.tensor_parallel_sums);
  if (!samples.tensor_parallel_sums_during_compute.samples.empty()) {
    json["tensor_parallel_sums_during_compute"] =
        series_json(samples.tensor_parallel_sums_during_compute, {}, 0);
    json["tensor_parallel_sums_during_compute"]["overlap"] = link.link.tensor_parallel_overlap;
  }
  return json;
}

}  // namespace pipewright::loop
