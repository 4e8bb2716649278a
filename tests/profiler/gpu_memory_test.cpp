// Memory of layers on a GPU, where autograd's thread runs backwards and may release its results
// after the caller has continued.

#include <ATen/ATen.h>
#include <sched.h>

#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/stage/split_backward.hpp"
#include "pipewright/profiler/profile/profile.hpp"
#include "profiler/support/on_standin.hpp"
#include "profiler/support/small_model.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

namespace gpu_memory_test {

using namespace pipewright;
using namespace pipewright::profiler;

void stay_on_core(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  REQUIRE(sched_setaffinity(0, sizeof cores, &cores) == 0);
}

/// Makes autograd's thread run only while this one waits.
void let_autograd_go_on_only_while_this_thread_waits() {
  const int core = sched_getcpu();
  stay_on_core(core);
  const at::Tensor leaf = at::zeros({1}, at::TensorOptions(at::kCUDA)).requires_grad_();
  const at::Tensor root = leaf * 2;
  bool is_done = false;
  root.register_hook([&](const at::Tensor& gradient) {
    stay_on_core(core);
    const sched_param none{};
    is_done = sched_setscheduler(0, SCHED_IDLE, &none) == 0;
    return gradient;
  });
  exec::full_backward({root}, {});
  REQUIRE(is_done);
}

TEST_CASE("Memory of layers on a GPU is exact even if autograd's thread releases late", "[cuda]") {
  if (exec::gpus().names.empty())
    test::skip(exec::gpus().why_none);
  if (!test::on_standin())
    test::skip("autograd's thread would stay slow for the tests of speed");
  let_autograd_go_on_only_while_this_thread_waits();
  const test::Fixed data(at::ones({8, 64}));
  const exec::TrainingSetup setup = test::setup_of(
      {test::linear("first", 64, 64), test::linear("linear", 64, 64),
       engine::function_layer("relu", [](const at::Tensor& x) { return at::relu(x); })},
      data);
  LayerBench bench(setup, {.device = at::Device(at::kCUDA, 0)});
  const auto costs = profile(bench, {1, 1, 1, 1e9});
  const plan::LayerCost &linear = costs.layers.at(1), &relu = costs.layers.at(2);
  constexpr std::int64_t output = 4 * 8 * 64;
  CHECK(linear.output.value == output);
  CHECK(linear.activation.value == 0);
  CHECK(linear.saves_input);
  CHECK_FALSE(linear.saves_output);
  CHECK(linear.freed_by_input_gradient.value == 0);
  CHECK(linear.gradients_for_weights.value == output);
  CHECK(linear.output_gradient_for_weights);
  CHECK(linear.input_for_weights);
  CHECK(relu.activation.value == output);
  CHECK(relu.freed_by_input_gradient.value == output);
  CHECK(relu.gradients_for_weights.value == 0);
  CHECK_FALSE(relu.output_gradient_for_weights);
}

}  // namespace gpu_memory_test
