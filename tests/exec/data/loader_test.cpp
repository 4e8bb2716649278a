#include "pipewright/exec/data/loader.hpp"

#include <ATen/ATen.h>

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace loader_test {

using namespace pipewright;
using namespace pipewright::exec;

/// Returns microbatches whose input is 0, 1, 2, … and whose target is ten times that.
BatchSource counting(int end) {
  return [end, next = 0]() mutable -> std::optional<Batch> {
    if (next == end)
      return {};
    const int value = next++;
    return Batch{{at::tensor(value)}, {at::tensor(10 * value)}};
  };
}

int input_of(const std::optional<Batch>& batch) { return batch->inputs[0].item<int>(); }

TEST_CASE("Tensors are split into pieces of equal size, and then end", "[exec]") {
  const auto next = batches_of({{at::arange(7)}, {at::arange(7) * 10}}, 3);
  CHECK(next()->inputs[0].equal(at::arange(3)));
  CHECK(next()->targets[0].equal(at::arange(3, 6) * 10));
  CHECK_FALSE(next().has_value());  // one sample does not fill a microbatch
  CHECK_FALSE(next().has_value());
}

TEST_CASE("Tensors that do not fill a microbatch are rejected", "[exec]") {
  const auto error = [](const Batch& all, int size) {
    return test::error_of([&] { batches_of(all, size); });
  };
  CHECK(error({{at::arange(4)}, {at::arange(5)}}, 2) ==
        "the data has tensors of 4 and of 5 samples");
  CHECK(error({{at::arange(4)}, {}}, 5) == "4 samples are too few for a microbatch of 5");
  CHECK(error({}, 1) == "0 samples are too few for a microbatch of 1");
}

TEST_CASE("A repeating loader opens the data again at its end", "[exec]") {
  int opened = 0;
  RepeatingLoader next([&] {
    ++opened;
    return counting(2);
  });
  std::vector<int> seen;
  for (int i = 0; i < 5; ++i)
    seen.push_back(input_of(next()));
  CHECK(seen == std::vector<int>{0, 1, 0, 1, 0});
  CHECK(opened == 3);
  CHECK_FALSE(RepeatingLoader([] { return counting(0); })().has_value());
}

TEST_CASE("The ranks read the microbatches of a step by index", "[exec]") {
  BatchSource source = counting(5);
  StepBuffer buffer;
  REQUIRE(buffer.fill(source, 0, 2));
  REQUIRE(buffer.fill(source, 1, 2));
  CHECK(buffer.inputs(1, 1)[0].item<int>() == 3);
  CHECK(buffer.targets(1, 0)[0].item<int>() == 20);
  CHECK(test::error_of([&] { buffer.inputs(0, 1); }) ==
        "microbatch 1 of step 0 was requested, but the buffer has 2 microbatches of step 1");
  CHECK(test::error_of([&] { buffer.inputs(1, 2); }) ==
        "microbatch 2 of step 1 was requested, but the buffer has 2 microbatches of step 1");
  CHECK_FALSE(buffer.fill(source, 2, 2));  // only one microbatch is left
}

TEST_CASE("Only the data that the stages of a process need is kept and read", "[exec]") {
  BatchSource source = counting(2);
  StepBuffer first({.inputs = true, .targets = false});
  REQUIRE(first.fill(source, 0, 1));
  CHECK(first.inputs(0, 0).size() == 1);
  CHECK(first.targets(0, 0).empty());

  int read = 0;
  BatchSource counted = [&]() -> std::optional<Batch> {
    ++read;
    return {};
  };
  StepBuffer middle({.inputs = false, .targets = false});
  CHECK(middle.fill(counted, 0, 4));
  CHECK(read == 0);
}

TEST_CASE("Each of several pipelines keeps its part of the batch", "[exec]") {
  BatchSource source = counting(6);
  StepBuffer second({.part = 1, .parts = 3});
  REQUIRE(second.fill(source, 0, 6));
  CHECK(second.inputs(0, 3)[0].item<int>() == 3);
  CHECK(test::error_of([&] { second.inputs(0, 4); }) ==
        "microbatch 4 of step 0 was requested, but the buffer has 2 microbatches of step 0");
}

/// Returns the step and microbatch of each call as data.
class Labeled final : public Dataset {
 public:
  at::Tensor input(int step, int microbatch) const override {
    return at::tensor(10 * step + microbatch);
  }
  at::Tensor target(int step, int microbatch) const override { return input(step, microbatch); }
};

TEST_CASE("A dataset's microbatches come step after step", "[exec]") {
  const Labeled data;
  const auto next = batches_of(data, 2);
  std::vector<int> seen;
  for (int i = 0; i < 4; ++i)
    seen.push_back(input_of(next()));
  CHECK(seen == std::vector<int>{0, 1, 10, 11});
}

}  // namespace loader_test
