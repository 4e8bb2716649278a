#pragma once

// Keeps a core and its memory as busy as layers do, for measurements under load.

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "cpu_clock.hpp"

namespace pipewright::profiler {

/// Adds tensors that together exceed the caches, one after the other.
class Computing {
 public:
  Computing() {
    for (int part = 0; part < parts; ++part)
      parts_.push_back(at::full({3, numbers}, 1, at::kFloat));
    constexpr int some = parts;
    compute(some);
    const double begin = clock_seconds(CLOCK_MONOTONIC);
    compute(some);
    sums_per_s_ = some / (clock_seconds(CLOCK_MONOTONIC) - begin);
  }
  /// Computes for about `seconds`, and does the same work in each call.
  void run(double seconds) { compute(std::max(1, static_cast<int>(seconds * sums_per_s_))); }

 private:
  static constexpr std::int64_t numbers = std::int64_t{1} << 17;
  static constexpr int parts = 24;
  void compute(int sums) {
    for (int i = 0; i < sums; ++i) {
      const at::Tensor& part = parts_[next_++ % parts];
      at::Tensor sum = part[0];
      at::add_out(sum, part[1], part[2]);
    }
  }

  std::vector<at::Tensor> parts_;
  std::size_t next_ = 0;
  double sums_per_s_ = 0;
};

}  // namespace pipewright::profiler
