#include "print/links_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "pipewright/plan/statistics.hpp"

namespace pipewright::cli {
namespace {

std::string message_size_text(plan::Bytes size) {
  constexpr std::int64_t kib = 1024, mib = kib * kib;
  if (size.value >= mib)
    return fmt::format("{:.4g} MiB", static_cast<double>(size.value) / mib);
  if (size.value >= kib)
    return fmt::format("{:.4g} KiB", static_cast<double>(size.value) / kib);
  return fmt::format("{} B", size.value);
}

std::string seconds_text(plan::Seconds time) {
  return time.value < 1e-3 ? fmt::format("{:.1f} us", 1e6 * time.value)
                           : fmt::format("{:.2f} ms", 1e3 * time.value);
}

std::string bandwidth_text(double per_s) {
  return per_s >= plan::unlimited_bandwidth ? "unlimited" : fmt::format("{:.3g} GB/s", per_s / 1e9);
}

std::string cell(const plan::LinkSeries& series, plan::Bytes size) {
  for (const plan::LinkSample& sample : series.samples)
    if (sample.size == size)
      return seconds_text(sample.time);
  return "–";
}

std::string fit_text(const plan::LinkFit& fit, const char* what) {
  std::vector<double> errors;
  for (const double residual : fit.residuals)
    errors.push_back(100 * std::abs(residual));
  std::string text = fmt::format("{}: {} and {}", what, seconds_text(fit.link.latency),
                                 bandwidth_text(fit.link.bandwidth_per_s));
  for (const plan::LinkSegment& segment : fit.link.segments)
    text += fmt::format("; from {} on, which take {}, {}", message_size_text(segment.from),
                        seconds_text(segment.time), bandwidth_text(segment.bandwidth_per_s));
  return text + fmt::format("; off by {:.1f} % (median), {:.1f} % at most\n", plan::median(errors),
                            *std::max_element(errors.begin(), errors.end()));
}

std::string ends_of(const plan::LinkSamples& samples) {
  std::string text;
  const auto add = [&](const plan::LinkSeries& series, const std::string& what) {
    if (!series.ended.empty())
      text += fmt::format("{}: larger sizes were not measured, because {}\n", what, series.ended);
  };
  add(samples.one_way, "one way");
  if (samples.computing)
    add(samples.computing->arrival, "while the sender computes");
  add(samples.both_ways, "both ways");
  for (std::size_t s = 0; s < samples.at_once.size(); ++s)
    add(samples.at_once[s], fmt::format("{} pairs", s + 2));
  for (std::size_t s = 0; s < samples.sums.size(); ++s)
    add(samples.sums[s], fmt::format("all-reduce over {}", s + 2));
  for (std::size_t s = 0; s < samples.tensor_parallel_sums.size(); ++s)
    add(samples.tensor_parallel_sums[s], fmt::format("tensor-parallel all-reduce over {}", s + 2));
  add(samples.tensor_parallel_sums_during_compute,
      "tensor-parallel all-reduce over 2 during compute");
  return text;
}

/// Returns the sizes to show; intermediate sizes, measured only one way, are omitted.
std::set<plan::Bytes> sizes_of(const plan::LinkSamples& samples) {
  std::set<plan::Bytes> sizes;
  for (const plan::LinkSample& sample : samples.one_way.samples)
    if (std::countr_zero(static_cast<std::uint64_t>(sample.size.value)) % 2 == 0)
      sizes.insert(sample.size);
  return sizes;
}

std::string header_of(const plan::LinkSamples& samples) {
  std::string text = fmt::format("{:>9} {:>10} {:>7} {:>8} {:>10}", "size", "one way", "spread",
                                 "link off", "both ways");
  for (std::size_t s = 0; s < samples.at_once.size(); ++s)
    text += fmt::format(" {:>10}", fmt::format("{} pairs", s + 2));
  for (std::size_t s = 0; s < samples.sums.size(); ++s)
    text += fmt::format(" {:>11}", fmt::format("sum over {}", s + 2));
  for (std::size_t s = 0; s < samples.tensor_parallel_sums.size(); ++s)
    text += fmt::format(" {:>11}", fmt::format("{} shards", s + 2));
  if (!samples.tensor_parallel_sums_during_compute.samples.empty())
    text += fmt::format(" {:>11}", "overlapped");
  if (samples.computing)
    text +=
        fmt::format(" {:>10} {:>10} {:>10} {:>10}", "computing", "sender", "receiver", "in sum");
  return text + "\n";
}

/// Returns the measurements with transfers of one size.
std::string row_of(const loop::MeasuredLink& link, plan::Bytes size) {
  const plan::LinkSamples& samples = link.samples;
  std::string text =
      fmt::format("{:>9} {:>10}", message_size_text(size), cell(samples.one_way, size));
  for (std::size_t s = 0; s < samples.one_way.samples.size(); ++s)
    if (const plan::LinkSample& sample = samples.one_way.samples[s]; sample.size == size)
      text +=
          fmt::format(" {:>5.0f} % {:>+6.1f} %", 100 * sample.spread, 100 * link.fit.residuals[s]);
  text += fmt::format(" {:>10}", cell(samples.both_ways, size));
  for (const plan::LinkSeries& series : samples.at_once)
    text += fmt::format(" {:>10}", cell(series, size));
  for (const auto* const sums : {&samples.sums, &samples.tensor_parallel_sums})
    for (const plan::LinkSeries& series : *sums)
      text += fmt::format(" {:>11}", cell(series, size));
  if (!samples.tensor_parallel_sums_during_compute.samples.empty())
    text += fmt::format(" {:>11}", cell(samples.tensor_parallel_sums_during_compute, size));
  if (samples.computing)
    for (const plan::LinkSeries* const series :
         {&samples.computing->arrival, &samples.computing->sender, &samples.computing->receiver,
          &samples.computing->sum})
      text += fmt::format(" {:>10}", cell(*series, size));
  return text + "\n";
}

std::string sharing_text(const loop::MeasuredLink& link) {
  std::string text;
  if (link.both_ways)
    text += fmt::format("both ways at once, large transfers take {:.2f} times as long\n",
                        *link.both_ways);
  for (const loop::LinkSharing& sharing : link.sharing)
    text += fmt::format(
        "{0} pairs at once, large transfers take {1:.2f} times as long (one link for all: {0}, one "
        "each: 1{2})\n",
        sharing.pairs, sharing.slow_down,
        loop::decides_sharing(link.samples, sharing) ? ""
                                                     : "; with more processes than in training");
  return text;
}

}  // namespace

std::string links_table(const loop::MeasuredLink& link) {
  std::string text = loop::name_of(link.samples) + "\n" + header_of(link.samples);
  for (const plan::Bytes size : sizes_of(link.samples))
    text += row_of(link, size);
  text += fit_text(link.fit, "a transfer");
  if (link.computing)
    text += fit_text(*link.computing, "while its sender computes");
  if (link.sums)
    text += fit_text(*link.sums, "a step of an all-reduce");
  if (link.tensor_parallel_sums)
    text += fit_text(*link.tensor_parallel_sums, "a step of a tensor-parallel all-reduce");
  if (!link.samples.tensor_parallel_sums_during_compute.samples.empty())
    text +=
        fmt::format("{:.0f} % of a tensor-parallel all-reduce over 2 ranks overlaps with compute\n",
                    100 * link.link.tensor_parallel_overlap);
  return text + sharing_text(link) + ends_of(link.samples);
}

}  // namespace pipewright::cli
