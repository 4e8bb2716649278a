#include "pipewright/plan/cluster/link_fit.hpp"

#include <cmath>
#include <functional>
#include <random>

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace link_fit_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

using Curve = std::function<double(double bytes)>;

/// Samples at powers of two from 1 byte to 256 MB, off the curve by a log-normal factor.
std::vector<LinkSample> samples_of(const Curve& curve, double noise = 0, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<LinkSample> samples;
  for (std::int64_t bytes = 1; bytes <= 1 << 28; bytes *= 2)
    samples.push_back(
        {.size = {bytes},
         .time = {curve(static_cast<double>(bytes)) * std::exp(noise * normal(random))}});
  return samples;
}

double line(double bytes) { return 5e-5 + bytes / 2e9; }
/// A curve on which messages of 64 KiB and more have a handshake first and then move faster.
double two_lines(double bytes) { return bytes < 65536 ? 3e-5 + bytes / 5e8 : 2e-4 + bytes / 4e9; }

double worst(const LinkFit& fit) {
  double worst = 0;
  for (const double residual : fit.residuals)
    worst = std::max(worst, std::abs(residual));
  return worst;
}

TEST_CASE("A straight curve gives its latency and bandwidth, and no segments", "[plan][link-fit]") {
  const LinkFit fit = fit_link(samples_of(line));
  CHECK(fit.link.latency.value == Approx(5e-5));
  CHECK(fit.link.bandwidth_per_s == Approx(2e9));
  CHECK(fit.link.segments.empty());
  CHECK(worst(fit) < 1e-9);
}

TEST_CASE("A curve that jumps gives a segment from the jump on", "[plan][link-fit]") {
  const LinkFit fit = fit_link(samples_of(two_lines));
  CHECK(fit.link.latency.value == Approx(3e-5));
  CHECK(fit.link.bandwidth_per_s == Approx(5e8));
  REQUIRE(fit.link.segments.size() == 1);
  CHECK(fit.link.segments[0].from == Bytes{65536});
  CHECK(fit.link.segments[0].time.value == Approx(two_lines(65536)));
  CHECK(fit.link.segments[0].bandwidth_per_s == Approx(4e9));
}

TEST_CASE("A segment begins where two lines meet", "[plan][link-fit]") {
  const LinkFit fit = fit_link(
      samples_of([](double bytes) { return std::max(1e-5 + bytes / 1e10, bytes / 1e9 - 9e-4); }));
  REQUIRE(fit.link.segments.size() == 1);
  CHECK(static_cast<double>(fit.link.segments[0].from.value) == Approx(9.1e-4 / (1e-9 - 1e-10)));
  CHECK(fit.link.segments[0].bandwidth_per_s == Approx(1e9));
}

TEST_CASE("Noise of 5 % hides neither latency nor bandwidth, and makes no segments",
          "[plan][link-fit]") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const LinkFit straight = fit_link(samples_of(line, 0.05, seed));
    CHECK(straight.link.segments.empty());
    CHECK(straight.link.latency.value == Approx(5e-5).epsilon(0.05));
    CHECK(straight.link.bandwidth_per_s == Approx(2e9).epsilon(0.05));
    const LinkFit jumping = fit_link(samples_of(two_lines, 0.05, seed));
    REQUIRE(jumping.link.segments.size() == 1);
    CHECK(jumping.link.segments[0].bandwidth_per_s == Approx(4e9).epsilon(0.1));
  }
}

TEST_CASE("One delayed sample does not affect the fit, and has a large residual",
          "[plan][link-fit]") {
  auto samples = samples_of(line, 0.01);
  samples[10].time = samples[10].time * 30;
  const LinkFit fit = fit_link(samples);
  CHECK(fit.link.segments.empty());
  CHECK(fit.link.latency.value == Approx(5e-5).epsilon(0.03));
  CHECK(fit.link.bandwidth_per_s == Approx(2e9).epsilon(0.03));
  CHECK(fit.residuals[10] == Approx(1.0 / 30 - 1).epsilon(0.05));
}

TEST_CASE("A transfer time that does not depend on the size gives unlimited bandwidth",
          "[plan][link-fit]") {
  const LinkFit fit = fit_link(samples_of([](double) { return 4e-6; }));
  CHECK(fit.link.latency.value == Approx(4e-6));
  CHECK(fit.link.bandwidth_per_s == unlimited_bandwidth);
}

TEST_CASE("Times that fall with the size do not give a negative bandwidth", "[plan][link-fit]") {
  const LinkFit fit = fit_link({{{1}, {2e-5}}, {{1000}, {1.5e-5}}, {{1'000'000}, {1e-5}}});
  CHECK(fit.link.bandwidth_per_s == unlimited_bandwidth);
  CHECK(fit.link.latency > Seconds{1e-5});
  CHECK(fit.link.latency < Seconds{2e-5});
}

TEST_CASE("Samples may come in any order, and several of a size", "[plan][link-fit]") {
  auto samples = samples_of(line);
  std::reverse(samples.begin(), samples.end());
  samples.push_back({{1 << 20}, {line(1 << 20)}});
  const LinkFit fit = fit_link(samples);
  CHECK(fit.link.bandwidth_per_s == Approx(2e9));
  CHECK(fit.residuals.size() == samples.size());
}

TEST_CASE("Too few sizes, and invalid times, are rejected", "[plan][link-fit]") {
  CHECK(error_of([] { fit_link({}); }) ==
        "transfers of 0 sizes are too few to fit a link: at least 3 are needed");
  CHECK(error_of([] {
          fit_link({{{1}, {1}}, {{1}, {1}}, {{8}, {1}}});
        }) == "transfers of 2 sizes are too few to fit a link: at least 3 are needed");
  CHECK(error_of([] {
          fit_link({{{1}, {1}}, {{8}, {0}}, {{64}, {1}}});
        }) == "a transfer of 8 bytes in 0 s is not possible");
}

TEST_CASE("Rings over any number of devices are samples of one step", "[plan][link-fit]") {
  const Link link{.latency = {1e-4}, .bandwidth_per_s = 1e9};
  std::vector<LinkSample> steps;
  for (int devices = 2; devices <= 4; ++devices)
    for (const std::int64_t bytes : {1200, 120'000, 12'000'000}) {
      const RingTime ring = ring_time(link, {bytes}, devices, 2);
      steps.push_back(ring_step({{bytes}, ring.held + ring.latency}, devices, 2));
    }
  const LinkFit fit = fit_link(steps);
  CHECK(fit.link.latency.value == Approx(1e-4));
  CHECK(fit.link.bandwidth_per_s == Approx(1e9));
}

TEST_CASE("A curve that is slowed down keeps its kinks", "[plan][links]") {
  const Link link{.latency = {0.5},
                  .bandwidth_per_s = 1e6,
                  .segments = {{.from = {1 << 20}, .time = {4.5}, .bandwidth_per_s = 4e6}}};
  std::vector<LinkSample> samples;
  for (const std::int64_t bytes : {1, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22})
    samples.push_back(
        {{bytes}, transfer_time(link, {bytes}) + Seconds{0.25 + static_cast<double>(bytes) / 1e6}});
  const LinkFit slow = slowed_down(link, samples);
  CHECK(slow.link.latency.value == Approx(0.75));
  CHECK(slow.link.bandwidth_per_s == Approx(5e5));
  CHECK(slow.link.segments.at(0).from == Bytes{1 << 20});
  CHECK(slow.link.segments.at(0).bandwidth_per_s == Approx(8e5));
  for (const double residual : slow.residuals)
    CHECK(residual == Approx(0).margin(1e-6));
  // The result is never faster, and one outlier does not affect it.
  for (LinkSample& sample : samples)
    sample.time = transfer_time(link, sample.size) * 0.5;
  CHECK(slowed_down(link, samples).link == link);
  for (LinkSample& sample : samples)
    sample.time = transfer_time(link, sample.size);
  samples[3].time = {100};
  CHECK(slowed_down(link, samples).link == link);
  CHECK_THROWS_AS(slowed_down(link, {samples[0]}), InputError);
}

TEST_CASE("The fitted overhead is never zero, however the samples scatter", "[plan][links]") {
  const Overhead line = fit_overhead({{{1}, {5e-5}}, {{10'001}, {6e-5}}, {{100'001}, {1.5e-4}}});
  CHECK(line.each.value == Approx(5e-5).epsilon(1e-3));
  CHECK(line.bandwidth_per_s == Approx(1e9));
  CHECK(line.segments.empty());
  // Under load, a line through the larger samples would begin below zero.
  const Overhead odd = fit_overhead({{{1}, {2e-5}}, {{1 << 14}, {2e-5}}, {{1 << 16}, {4e-4}}});
  CHECK(odd.each.value == Approx(2e-5));
  const Overhead falling = fit_overhead({{{1}, {4e-4}}, {{1 << 14}, {1e-4}}, {{1 << 16}, {1e-4}}});
  CHECK(falling.each.value == Approx(2e-4));
  CHECK(falling.bandwidth_per_s == 0);
  CHECK_THROWS_AS(fit_overhead({{{1}, {1}}, {{2}, {1}}}), InputError);
}

TEST_CASE("The fitted overhead matches the measured overhead of each size", "[plan][links]") {
  // A receiver on a slow cable, whose cost per byte grows with the size.
  const std::vector<LinkSample> samples{{{1}, {1e-4}},         {{1 << 14}, {1e-4}},
                                        {{1 << 16}, {1.9e-4}}, {{1 << 17}, {3e-4}},
                                        {{1 << 18}, {5e-4}},   {{1 << 20}, {1e-2}}};
  const Overhead overhead = fit_overhead(samples);
  for (const LinkSample& sample : samples)
    CHECK(time_of(overhead, sample.size).value == Approx(sample.time.value).epsilon(0.1));
  CHECK(overhead.segments.size() == 2);  // samples on one line add no kink
  const double per_byte = (1e-2 - 5e-4) / ((1 << 20) - (1 << 18));
  CHECK(time_of(overhead, Bytes{1 << 21}).value == Approx(1e-2 + per_byte * (1 << 20)));
  // A curve that flattens at the end is not extrapolated as flat.
  const Overhead flat = fit_overhead({{{1}, {1e-4}}, {{1 << 18}, {1e-3}}, {{1 << 20}, {1e-3}}});
  CHECK(time_of(flat, Bytes{1 << 21}).value == Approx(1.9e-3).epsilon(1e-3));
}

}  // namespace link_fit_test
