#include "pipewright/profiler/profile/inspection.hpp"

#include <ATen/ATen.h>

#include "pipewright/exec/training/layer.hpp"
#include "pipewright/profiler/profile/profile.hpp"
#include "profiler/support/made_up_activity.hpp"
#include "profiler/support/small_model.hpp"
#include "support/catch.hpp"

namespace inspection_test {

using namespace pipewright;
using namespace pipewright::profiler;
using Kind = plan::InstructionKind;

struct Two {
  test::Fixed data{at::ones({8, 64})};
  exec::TrainingSetup setup = test::setup_of(
      {test::linear("first", 64, 128),
       engine::function_layer("relu", [](const at::Tensor& x) { return at::relu(x); })},
      data);
};

const WorkPart& part_of(const WorkReport& report, int layer, Kind kind) {
  for (const WorkPart& part : report.parts)
    if (part.layer == layer && part.kind == kind)
      return part;
  throw std::runtime_error("no such part");
}

TEST_CASE("An inspection finds each part of each layer, with its operators", "[activity]") {
  const Two two;
  const LayerBench bench(two.setup);
  const auto source = operator_source();
  const Inspection found = inspect(bench, *source, 3);
  CHECK(found.report.source == "the host's clock");
  CHECK_FALSE(found.report.on_device);
  CHECK(found.report.overhead);
  CHECK_FALSE(found.report.lost.any());
  // A pass has two microbatches with a forward, and one of each other action.
  CHECK(part_of(found.report, 0, Kind::Forward).times == 6);
  CHECK(part_of(found.report, 1, Kind::InputGradient).times == 3);
  CHECK(part_of(found.report, 0, Kind::WeightGradient).times == 3);
  CHECK(part_of(found.report, 0, Kind::OptimizerStep).times == 3);
  const auto& kernels = part_of(found.report, 1, Kind::Forward).kernels;
  CHECK(std::any_of(kernels.begin(), kernels.end(),
                    [](const KernelSum& sum) { return sum.name == "aten::relu"; }));
  CHECK(found.samples.size() == 3);  // including the loss
  CHECK(found.samples[0].forward.size() == 6);
  CHECK(found.samples[0].weight_gradient.size() == 3);
}

TEST_CASE("An inspection stopped before its first pass finds nothing", "[activity]") {
  const Two two;
  const LayerBench bench(two.setup);
  const auto source = operator_source();
  const std::atomic<bool> stop = true;
  const Inspection found = inspect(bench, *source, 3, &stop);
  CHECK(found.report.parts.empty());
  CHECK_FALSE(found.report.overhead);
}

TEST_CASE("Costs take device times, and stay unchanged for layers without records", "[activity]") {
  test::SyntheticData made;
  const auto f = made.range("0F0", 0, 10, 0, 0), b = made.range("0B0", 10, 20, 0, 0);
  const auto i = made.range("0I1", 20, 30, 0, 0), w = made.range("0W1", 30, 40, 0, 0);
  made.kernel("f", f, 1, 1, 101);
  made.kernel("b", b, 11, 101, 281);
  made.kernel("i", i, 21, 281, 381);
  made.kernel("w", w, 31, 381, 481);
  Inspection found;
  append_samples(made.pass, found.samples);
  plan::LayerCosts costs;
  costs.layers.resize(2);
  costs.layers[0].parameters = {100};
  costs.layers[0].forward = costs.layers[1].forward = {1};
  const plan::LayerCosts better = with_device_times(costs, found);
  CHECK(better.layers[0].forward.value == Approx(101e-6));  // with the launch of the first kernel
  CHECK(better.layers[0].input_gradient.value == Approx(100e-6));
  CHECK(better.layers[0].splitting.value == Approx(20e-6));
  CHECK(better.layers[0].weight_gradient.value == Approx(100e-6));
  CHECK(better.layers[1].forward.value == 1);

  std::vector<LayerSamples> whole;
  append_samples(made.pass, whole, /*launches_whole=*/true);
  CHECK(whole.at(0).forward.at(0) == Approx(100e-6));
  CHECK(whole.at(0).backward.at(0) == Approx(180e-6));
}

}  // namespace inspection_test
