// Documents packed into one sample have the same logits, loss and gradients as alone. Pipelines
// with tensor parallelism are bit-identical to training without.

#include <ATen/ATen.h>

#include "exec/support/equals_serial.hpp"
#include "exec/support/sample_schedules.hpp"
#include "exec/support/sharded_gpt.hpp"
#include "exec/support/small_transformers.hpp"
#include "pipewright/engine/models/causal_attention.hpp"
#include "pipewright/engine/models/group_layers.hpp"
#include "pipewright/exec/data/tokens.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "support/temp_folder.hpp"

namespace packed_documents_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;

constexpr int longest = 8;

at::Tensor scores_of(const std::vector<LayerSpec>& specs, Tensors values) {
  for (int at = 0; at < static_cast<int>(specs.size()); ++at)
    values = build_layer(specs, at, /*base_seed=*/3)->forward_all(values, {});
  return values.front();
}

TEST_CASE("A packed document sees only itself", "[exec][models]") {
  const at::NoGradGuard no_grad;
  for (const auto& [name, shape] : test::small_transformers()) {
    CAPTURE(name);
    const auto specs = transformer_layers(shape);
    const at::Tensor tokens = (at::arange(2 * longest) * 7 + 3).remainder(37).view({2, longest});
    // The first sample has 3 and 4 tokens and one of padding, the second 5 and 3.
    const at::Tensor documents =
        at::tensor({0, 0, 0, 1, 1, 1, 1, -1, 0, 0, 0, 0, 0, 1, 1, 1}, at::kLong).view({2, longest});
    const at::Tensor packed = scores_of(specs, {tokens, documents});
    for (const auto& [sample, begin, length] :
         {std::tuple{0, 0, 3}, {0, 3, 4}, {1, 0, 5}, {1, 5, 3}}) {
      const at::Tensor alone =
          scores_of(specs, {tokens.narrow(0, sample, 1).narrow(1, begin, length)});
      CHECK(at::allclose(packed.narrow(0, sample, 1).narrow(1, begin, length), alone, 1e-4, 1e-5));
    }
  }
}

TEST_CASE("Positions restart with each document", "[exec][models]") {
  CHECK(
      at::equal(places_in_documents(at::tensor({0, 0, 0, 1, 1, 2, -1, -1}, at::kLong).view({1, 8})),
                at::tensor({0, 1, 2, 0, 1, 0, 0, 1}, at::kLong).view({1, 8})));
}

TEST_CASE("Packed samples train bit-identically with pipelines and tensor parallelism", "[exec]") {
  const test::TempFolder folder;
  std::vector<std::uint16_t> tokens;
  for (int t = 0; t < 400; ++t)
    tokens.push_back(static_cast<std::uint16_t>(t % 11 == 10 || t % 7 == 6 ? 0 : 1 + t * 5 % 36));
  const auto data = open_tokens(
      folder.write("tokens.bin", std::string(reinterpret_cast<const char*>(tokens.data()),
                                             tokens.size() * sizeof(tokens[0]))),
      longest, /*vocabulary=*/37,
      {.microbatches = 4,
       .microbatch_size = 2,
       .order = plan::SampleOrder::Packed,
       .document_end = 0});
  int trained = 0;
  for (const auto& shape : {test::small_llama(), test::small_gpt2(), test::small_mixture()})
    for (const auto& schedule : {test::make("1f1b", 3, 4), test::make("zbv", 2, 4)}) {
      const Tokens cut = trained++ % 2 == 0 ? Tokens::Whole : Tokens::Cut;
      const test::Sizes sizes{schedule, /*replicas=*/1, /*shards=*/2};
      auto setup = test::small_setup_of(shape, 2, cut);
      setup.data = data.get();
      const int last = plan::stage_count(schedule) - 1;
      test::check_equals_serial(
          plan::lower(schedule,
                      {.tied_stages = shape.config.tied ? std::vector{0, last} : std::vector<int>{},
                       .share_loss = true}),
          test::partition_for(schedule), setup, sizes.options(), /*steps=*/2);
    }
  CHECK(trained == 6);
}

}  // namespace packed_documents_test
