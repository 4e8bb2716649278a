#include "pipewright/exec/adamw.hpp"

#include <torch/torch.h>

#include <cmath>

#include "support/catch.hpp"

namespace {

using pipewright::exec::AdamW;

TEST_CASE("AdamW: two steps of one number follow the formula", "[exec]") {
  const double rate = 0.1, decay = 0.01, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  const at::Tensor weight = torch::tensor({2.0}, torch::requires_grad());
  AdamW optimizer({weight}, {rate, decay, beta1, beta2, epsilon});

  double w = 2.0, m = 0, v = 0;
  const double gradients[] = {0.5, -1.5};
  for (int step = 1; step <= 2; ++step) {
    const double g = gradients[step - 1];
    (weight * g).sum().backward();
    optimizer.step();

    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    w -= rate * decay * w;
    w -= rate * (m / (1 - std::pow(beta1, step))) /
         (std::sqrt(v / (1 - std::pow(beta2, step))) + epsilon);
    CHECK(weight.item<float>() == Approx(w));
  }
  CHECK(weight.grad().item<float>() == 0);
}

TEST_CASE("AdamW: gradients of several backwards add up into memory that is there from the start",
          "[exec]") {
  const at::Tensor weight = torch::ones({3}, torch::requires_grad());
  AdamW optimizer({weight}, {});
  const void* const memory = weight.grad().const_data_ptr();
  weight.sum().backward();
  weight.sum().backward();
  CHECK(weight.grad().const_data_ptr() == memory);
  CHECK(at::equal(weight.grad(), torch::full({3}, 2.0)));
}

TEST_CASE("AdamW: no parameters are no trouble", "[exec]") {
  AdamW optimizer({}, {});
  CHECK_NOTHROW(optimizer.step());
}

}  // namespace
