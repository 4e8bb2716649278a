#pragma once

#include <torch/torch.h>

#include <vector>

namespace pipewright::exec {

/// AdamW (Loshchilov & Hutter, ICLR 2019): with gradient g at step t,
///   m = β₁m + (1−β₁)g,  v = β₂v + (1−β₂)g²,
///   w = w − η·λ·w − η · (m/(1−β₁ᵗ)) / (√(v/(1−β₂ᵗ)) + ε).
/// Runs as LibTorch's fused kernel, without temporaries.
class AdamW {
 public:
  struct Options {
    double learning_rate = 1e-3;
    double weight_decay = 0.01;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
  };

  /// Allocates the moments, and zeroed gradients for parameters that have none: from here on a
  /// backward only adds to them.
  AdamW(std::vector<at::Tensor> parameters, const Options& options);

  /// One update of every parameter; zeroes the gradients.
  void step();

  const std::vector<at::Tensor>& parameters() const { return parameters_; }

 private:
  Options options_;
  std::vector<at::Tensor> parameters_, gradients_, first_moments_, second_moments_, step_counts_;
};

}  // namespace pipewright::exec
