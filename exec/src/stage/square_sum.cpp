#include "pipewright/exec/stage/square_sum.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace pipewright::exec {
namespace {

/// Bin b has units of 2^(bin_bits · (b + lowest_bin)). Squares of a chunk are split into
/// `kept_bins` + 1 bins: one more than kept, because the chunk's largest square may be half a unit
/// of its highest bin.
constexpr int bin_bits = 20, lowest_bin = -51, bin_count = 100, kept_bins = 4;

/// Elements of a chunk; on a CPU few enough for its cache.
constexpr std::int64_t chunk_on_cpu = std::int64_t{1} << 15, chunk_on_gpu = std::int64_t{1} << 22;

/// Returns a number for each bin. Adding and then subtracting it rounds to units of that bin.
std::vector<double> anchors() {
  std::vector<double> all;
  for (int bin = 0; bin < bin_count; ++bin)
    all.push_back(std::ldexp(1.5, bin_bits * (bin + lowest_bin) + 52));
  return all;
}

}  // namespace

void SquareSum::add(const Tensors& values) {
  const at::NoGradGuard no_grad;
  Tensors chunk;
  std::int64_t left = 0;
  for (const at::Tensor& value : values) {
    const at::Tensor flat = value.detach().reshape(-1);
    const std::int64_t most = flat.is_cpu() ? chunk_on_cpu : chunk_on_gpu;
    for (std::int64_t begin = 0; begin < flat.numel();) {
      if (left == 0) {
        add_chunk(std::exchange(chunk, {}));
        left = most;
      }
      const std::int64_t count = std::min(left, flat.numel() - begin);
      chunk.push_back(flat.narrow(0, begin, count).to(at::kDouble));
      begin += count, left -= count;
    }
  }
  add_chunk(chunk);
}

void SquareSum::add_chunk(const Tensors& flat) {
  if (flat.empty())
    return;
  const auto on_device = flat.front().options();
  if (!bins_.defined()) {
    bins_ = at::zeros({bin_count}, on_device);
    anchors_ = at::tensor(anchors(), at::kDouble).to(on_device.device());
  }
  at::Tensor squares = at::cat(flat).square_();
  const at::Tensor largest = squares.max();
  // If 2^e is the power above the largest square, all bins above e / bin_bits would get nothing.
  const at::Tensor highest =
      at::floor_divide(std::get<1>(at::frexp(largest)).to(at::kLong), bin_bits) - lowest_bin;
  bins_.add_(largest - largest);  // adds NaN if it is not finite
  for (int below = 0; below <= kept_bins; ++below) {
    const at::Tensor bin = (highest - below).clamp(0, bin_count - 1).view(1);
    const at::Tensor anchor = anchors_.index_select(0, bin);
    const at::Tensor rounded = (squares + anchor).sub_(anchor);
    bins_.index_add_(0, bin, rounded.sum().view(1));
    squares.sub_(rounded);
  }
}

void SquareSum::add_bins(const at::Tensor& others) {
  const at::NoGradGuard no_grad;
  bins_ = bins_.defined() ? bins_ + others.to(bins_.device()) : others;
}

at::Tensor SquareSum::total() const {
  if (!bins_.defined())
    return at::zeros({}, at::kDouble);
  // Lower bins depend on how numbers were split into chunks, so they are left out.
  const at::Tensor places = at::arange(bin_count, at::kLong).to(bins_.device());
  const at::Tensor highest = at::where(bins_ != 0, places, 0).max();
  return at::where(places > highest - kept_bins, bins_, 0).flip(0).cumsum(0)[bin_count - 1];
}

}  // namespace pipewright::exec
