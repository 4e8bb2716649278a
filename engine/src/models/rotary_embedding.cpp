#include "rotary_embedding.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "pipewright/exec/device/stream.hpp"

namespace pipewright::engine {
namespace {

using plan::Rotary;

constexpr double turn = 2 * std::numbers::pi;

/// Divides the angles of waves that fit into the sequence fewer than `low` times by the factor,
/// keeps those that fit more than `high` times, and interpolates linearly in between.
at::Tensor slowed_by_wave(const Rotary& r, const at::Tensor& speeds) {
  const at::Tensor waves = r.longest / (turn / speeds);
  const at::Tensor kept = ((waves - r.low) / (r.high - r.low)).clamp(0, 1);
  return (1 - kept) * speeds / r.factor + kept * speeds;
}

/// Returns the index of the pair that makes `turns` full turns in the sequence.
double pair_with_turns(const Rotary& r, double turns, double channels) {
  return channels * std::log(r.longest / (turns * turn)) / (2 * std::log(r.base));
}

at::Tensor slowed_by_ramp(const Rotary& r, const at::Tensor& speeds) {
  const auto channels = 2.0 * static_cast<double>(speeds.size(0));
  const double first = std::max(std::floor(pair_with_turns(r, r.fast, channels)), 0.0);
  double last = std::min(std::ceil(pair_with_turns(r, r.slow, channels)), channels - 1);
  if (first == last)
    last += 0.001;  // as in all implementations
  const at::Tensor slow =
      ((at::arange(speeds.size(0), at::kFloat) - first) / (last - first)).clamp(0, 1);
  return speeds / r.factor * slow + speeds * (1 - slow);
}

at::Tensor factors_of_pairs(const Rotary& r, std::int64_t pairs, std::int64_t length) {
  const auto& factors = r.longest > 0 && length > r.longest ? r.longs : r.shorts;
  at::Tensor by_pair = at::ones({pairs});
  for (std::int64_t pair = 0; pair < std::min<std::int64_t>(pairs, std::ssize(factors)); ++pair)
    by_pair[pair] = factors[static_cast<std::size_t>(pair)];
  return by_pair;
}

}  // namespace

at::Tensor rotary_speeds(const Rotary& r, std::int64_t channels, std::int64_t length,
                         bool in_window) {
  const double base = in_window && r.window_base > 0 ? r.window_base : r.base;
  const at::Tensor waves =
      at::pow(base, at::arange(0, channels, 2, at::kFloat) / static_cast<double>(channels));
  const at::Tensor speeds = 1 / waves;
  if (in_window && r.window_base > 0)
    return speeds;
  switch (r.scaling) {
    case plan::RotaryScaling::None:
      return speeds;
    case plan::RotaryScaling::Linear:
      return speeds / r.factor;
    case plan::RotaryScaling::Llama3:
      return slowed_by_wave(r, speeds);
    case plan::RotaryScaling::Yarn:
      return slowed_by_ramp(r, speeds);
    case plan::RotaryScaling::Long:
      return 1 / (factors_of_pairs(r, speeds.size(0), length) * waves);
  }
  return speeds;
}

std::int64_t turns_otherwise_beyond(const Rotary& r, bool in_window) {
  return r.scaling == plan::RotaryScaling::Long && !(in_window && r.window_base > 0) ? r.longest
                                                                                     : 0;
}

at::Tensor RotaryEmbedding::operator()(const at::Tensor& heads,
                                       const std::optional<Part>& of_longer) {
  const Part part = of_longer.value_or(Part{0, heads.size(1)});
  const std::int64_t channels = heads.size(3);
  const auto turning =
      static_cast<std::int64_t>(rotary_.share * static_cast<double>(channels)) / 2 * 2;
  if (turning == channels)
    return turned(heads, part);
  const auto parts = heads.split_with_sizes({turning, channels - turning}, -1);
  return at::cat({turned(parts[0], part), parts[1]}, -1);
}

at::Tensor RotaryEmbedding::turned(const at::Tensor& heads, const Part& part) {
  make_tables(heads, part.all);
  const at::Tensor cosine = cosine_.narrow(0, part.first, heads.size(1)),
                   sine = sine_.narrow(0, part.first, heads.size(1));
  if (!rotary_.neighbors) {
    const auto halves = heads.chunk(2, -1);
    return heads * cosine + at::cat({-halves[1], halves[0]}, -1) * sine;
  }
  // Interleaved pairs are first separated into halves. Queries and keys are permuted in the same
  // way, so scores do not change.
  const at::Tensor pairs = heads.unflatten(-1, {-1, 2});
  const at::Tensor first = pairs.select(-1, 0), second = pairs.select(-1, 1);
  return at::cat({first, second}, -1) * cosine + at::cat({-second, first}, -1) * sine;
}

/// Returns true if the tables can be reused. A part of a sequence may use rows of tables made for a
/// longer one.
bool RotaryEmbedding::are_right(const at::Tensor& heads, std::int64_t all) const {
  if (!cosine_.defined() || cosine_.dtype() != heads.dtype() || cosine_.device() != heads.device())
    return false;
  const std::int64_t rows = cosine_.size(0);
  if (rows == all || heads.size(1) == all)
    return rows == all;
  const std::int64_t otherwise = turns_otherwise_beyond(rotary_, in_window_);
  return rows > all && (otherwise == 0 || (rows > otherwise) == (all > otherwise));
}

void RotaryEmbedding::make_tables(const at::Tensor& heads, std::int64_t length) {
  if (are_right(heads, length))
    return;
  const std::int64_t channels = heads.size(3);
  // In single precision, as models were trained: double precision would give other angles far out
  // in a sequence.
  const at::Tensor angles = at::outer(at::arange(length, at::kFloat),
                                      rotary_speeds(rotary_, channels, length, in_window_))
                                .repeat({1, 2})
                                .unsqueeze(1);
  const auto table = [&](const at::Tensor& values) {
    return exec::put_on((values * rotary_.magnitude).to(heads.scalar_type()), heads.device());
  };
  cosine_ = table(angles.cos());
  sine_ = table(angles.sin());
}

}  // namespace pipewright::engine
