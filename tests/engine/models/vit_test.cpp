#include <ATen/ATen.h>

#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/model/vit_model.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace vit_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;

constexpr plan::VitShape small{.blocks = 1, .hidden = 12, .heads = 2, .patch = 2, .image_size = 6};

std::vector<LayerSpec> layers() { return builder_of(plan::ModelShape(small)).layers(small, {}); }

TEST_CASE("ViT: a patch is a square of pixels, which no other affects", "[exec][models]") {
  const at::NoGradGuard no_grad;
  const auto patches = build_layer(layers(), 0, /*base_seed=*/1);
  const at::Tensor image = at::rand({1, 3, 6, 6});
  const at::Tensor before = patches->forward(image, {});
  CHECK(before.sizes() == at::IntArrayRef{1, 9, 12});
  for (const auto& [row, column] : {std::pair{0, 0}, {3, 4}, {5, 1}}) {
    at::Tensor other = image.clone();
    other[0][1][row][column] += 1;
    const at::Tensor changed =
        (patches->forward(other, {}) - before).abs().sum(-1).squeeze(0) > 1e-6;
    CHECK(changed.sum().item<int>() == 1);
    CHECK(changed[(row / 2) * 3 + column / 2].item<bool>());
  }
}

TEST_CASE("ViT: each patch sees all other patches", "[exec][models]") {
  const at::NoGradGuard no_grad;
  const auto block = build_layer(layers(), 1, /*base_seed=*/1);
  const at::Tensor input = at::rand({1, 9, 12});
  const at::Tensor before = block->forward(input, {});
  for (const int patch : {0, 8}) {
    at::Tensor other = input.clone();
    other[0][patch] += at::rand({12});
    CHECK(((block->forward(other, {}) - before).abs().sum(-1) > 1e-7).all().item<bool>());
  }
}

TEST_CASE("ViT: sizes that do not fit together are rejected with valid ones", "[exec][models]") {
  CHECK(test::error_of([] {
          builder_of(plan::ModelShape(small)).layers(small, {.tokens = Tokens::Cut});
        }).starts_with("pipeline.sequence_parallel: "));
  CHECK(plan::faults_of_vit_cut(small, 2).empty());
  CHECK(plan::faults_of_vit_cut({.heads = 6}, 4).front() ==
        "6 heads cannot be divided into 4 parts evenly; 3 or 6 would do");
}

}  // namespace vit_test
