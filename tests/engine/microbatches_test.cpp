#include "pipewright/engine/microbatches.hpp"

#include <ATen/ATen.h>

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace microbatches_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;

at::Tensor numbers(std::vector<std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t length : shape)
    count *= length;
  return at::arange(count, at::kFloat).view(shape);
}

std::string split_error(const Tensors& batch, int chunks,
                        const std::vector<ChunkSpec>& specs = {}) {
  return test::error_of([&] { split_batch(batch, chunks, specs); });
}

TEST_CASE("A batch is split along dimension 0 of every argument, without a copy", "[exec]") {
  const at::Tensor images = numbers({6, 2}), labels = at::arange(6);
  const auto microbatches = split_batch({images, labels}, 3);
  REQUIRE(microbatches.size() == 3);
  CHECK(microbatches[1][0].equal(images.slice(0, 2, 4)));
  CHECK(microbatches[2][1].equal(labels.slice(0, 4, 6)));
  CHECK(microbatches[1][0].const_data_ptr<float>() == images.const_data_ptr<float>() + 4);
}

TEST_CASE("An argument is split along its own dimension, counted from either end, or replicated",
          "[exec]") {
  const at::Tensor tokens = numbers({5, 4}), mask = numbers({3, 5});
  const auto microbatches =
      split_batch({tokens, tokens, mask}, 2, {{.dimension = 1}, {.dimension = -1}, replicate});
  CHECK(microbatches[1][0].equal(tokens.slice(1, 2, 4)));
  CHECK(microbatches[1][1].equal(tokens.slice(1, 2, 4)));
  CHECK(microbatches[0][2].is_same(mask));
  CHECK(microbatches[1][2].is_same(mask));
}

TEST_CASE("Scalars, empty tensors and undefined tensors are handled", "[exec]") {
  const at::Tensor temperature = at::scalar_tensor(0.5);
  const auto with_number =
      split_batch({numbers({4}), temperature, at::Tensor()}, 2, {ChunkSpec{}, replicate, {}});
  CHECK(with_number[1][1].is_same(temperature));
  CHECK_FALSE(with_number[0][2].defined());
  CHECK(split_batch({at::empty({4, 0})}, 2)[1][0].sizes() == std::vector<std::int64_t>{2, 0});
  CHECK(split_batch({at::empty({0, 3})}, 2)[1][0].sizes() == std::vector<std::int64_t>{0, 3});
  CHECK(split_error({temperature}, 2) ==
        "argument 0 of the batch is a single number, which cannot be cut: replicate it");
}

TEST_CASE("If a batch does not divide evenly, the first microbatches have one sample more",
          "[exec]") {
  const at::Tensor samples = numbers({12, 2});
  const auto microbatches = split_batch({samples}, 5);
  const Tensors expected = at::tensor_split(samples, 5);
  for (std::size_t m = 0; m < 5; ++m)
    CHECK(microbatches[m][0].equal(expected[m]));
  CHECK(microbatches[4][0].size(0) == 2);
  CHECK(split_error({numbers({3})}, 4) ==
        "a batch of 3 samples does not fill 4 microbatches: give at least 4 samples, or have at "
        "most 3 microbatches");
  CHECK(split_error({numbers({3})}, 0) == "0 microbatches requested, but at least 1 is needed");
}

TEST_CASE("Arguments that do not fit together are rejected", "[exec]") {
  CHECK(split_error({numbers({4}), numbers({6, 4})}, 2) ==
        "argument 1 of the batch has 6 samples along dimension 0, but argument 0 has 4 along "
        "dimension 0: cut both where they are equally long, or replicate one");
  CHECK(split_error({numbers({4})}, 2, {{.dimension = 1}}) ==
        "argument 0 of the batch, [4], has no dimension 1 to cut");
  CHECK(split_error({numbers({4})}, 2, {replicate}) ==
        "every argument of the batch is replicated: there is nothing to cut");
  CHECK(split_error({numbers({4})}, 2, {replicate, replicate}) ==
        "the batch has 1 arguments, but 2 chunk specs are given");
}

TEST_CASE("Merging reverses a split", "[exec]") {
  const at::Tensor rows = numbers({4, 6});
  CHECK(merge_outputs(split_batch({rows}, 2))[0].equal(rows));
  CHECK(merge_outputs(split_batch({rows}, 3, {{.dimension = 1}}), {concatenate(1)})[0].equal(rows));
}

TEST_CASE("Outputs are added up, averaged, or merged by a custom function", "[exec]") {
  const std::vector<Tensors> losses{{at::tensor(1.0), at::tensor(1.0), at::tensor(1.0)},
                                    {at::tensor(4.0), at::tensor(4.0), at::tensor(4.0)}};
  const Merge last = [](const Tensors& parts) { return parts.back(); };
  const Tensors batch = merge_outputs(losses, {sum(), mean(), last});
  CHECK(batch[0].item<double>() == 5);
  CHECK(batch[1].item<double>() == 2.5);
  CHECK(batch[2].item<double>() == 4);
}

TEST_CASE("Outputs that do not fit together are rejected", "[exec]") {
  const auto error = [](const std::vector<Tensors>& microbatches,
                        const std::vector<Merge>& merges = {}) {
    return test::error_of([&] { merge_outputs(microbatches, merges); });
  };
  CHECK(error({}) == "there are no microbatches to merge");
  CHECK(error({{numbers({2})}, {}}) == "microbatch 1 has 0 outputs, but microbatch 0 has 1");
  CHECK(error({{numbers({2})}}, {sum(), sum()}) ==
        "the microbatches have 1 outputs, but 2 merges are given");
  CHECK(error({{numbers({2})}, {at::Tensor()}}) == "output 0 exists in only 1 of 2 microbatches");
  CHECK(error({{numbers({2, 2})}, {numbers({2, 3})}})
            .starts_with("output 0 of the microbatches cannot be merged: "));
  CHECK_FALSE(merge_outputs({{at::Tensor()}, {at::Tensor()}})[0].defined());
}

}  // namespace microbatches_test
