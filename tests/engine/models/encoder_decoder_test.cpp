#include <ATen/ATen.h>

#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/model/encoder_decoder_model.hpp"
#include "support/catch.hpp"
#include "support/temp_folder.hpp"

namespace encoder_decoder_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;

constexpr plan::EncoderDecoderShape small{
    .encoder_blocks = 1, .decoder_blocks = 1, .hidden = 12, .heads = 2, .sequence = 5};

std::shared_ptr<Layer> layer(int index) {
  return build_layer(builder_of(plan::ModelShape(small)).layers(small, {}), index, 1);
}

/// Returns the tokens of the side `looked_at` that change if a token of `side` is changed.
std::vector<int> changed_by(int index, int side, int token, int looked_at) {
  const at::NoGradGuard no_grad;
  const auto block = layer(index);
  const Tensors input{at::rand({1, 5, 12}), at::rand({1, 5, 12})};
  Tensors other{input[0].clone(), input[1].clone()};
  other[static_cast<std::size_t>(side)][0][token] += at::rand({12});
  const auto at = static_cast<std::size_t>(looked_at);
  const at::Tensor differs =
      ((block->forward_all(other, {})[at] - block->forward_all(input, {})[at]).abs().sum(-1) > 1e-7)
          .squeeze(0);
  std::vector<int> tokens;
  for (int t = 0; t < 5; ++t)
    if (differs[t].item<bool>())
      tokens.push_back(t);
  return tokens;
}

TEST_CASE("Encoder-decoder: the encoder sees all of the input text, and nothing of the output",
          "[exec][models]") {
  const std::vector<int> all{0, 1, 2, 3, 4};
  CHECK(changed_by(/*encoder*/ 1, 0, 3, 0) == all);
  CHECK(changed_by(1, 1, 3, 0).empty());
  CHECK(changed_by(1, 1, 3, 1) == std::vector{3});  // it is passed on unchanged
}

TEST_CASE("Encoder-decoder: the decoder sees the input text, and the preceding part of the output",
          "[exec][models]") {
  CHECK(changed_by(/*decoder*/ 2, 0, 3, 1) == std::vector{0, 1, 2, 3, 4});
  CHECK(changed_by(2, 1, 3, 1) == std::vector{3, 4});
  CHECK(changed_by(2, 1, 3, 0).empty());
}

TEST_CASE("Encoder-decoder: a window is written from its last byte to its first",
          "[exec][models]") {
  const test::TempFolder folder;
  const auto data = builder_of(plan::ModelShape(small))
                        .open(small, folder.write("t.txt", "abcdef"), {.microbatch_size = 1});
  const at::Tensor input = data->input(0, 0), target = data->target(0, 0);
  CHECK(input.sizes() == at::IntArrayRef{1, 2, 5});
  CHECK(at::equal(target, input.select(1, 0).flip(1)));
  CHECK(input[0][1][0].item<int>() == 0);
  CHECK(at::equal(input[0][1].narrow(0, 1, 4), target[0].narrow(0, 0, 4)));
}

}  // namespace encoder_decoder_test
