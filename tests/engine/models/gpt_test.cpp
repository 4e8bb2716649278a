#include "pipewright/engine/models/gpt.hpp"

#include <ATen/ATen.h>

#include "exec/support/small_gpt.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "support/catch.hpp"

namespace gpt_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;

TEST_CASE("GPT: tokens do not see later ones", "[exec]") {
  const auto specs = gpt_layers(test::small_shape);
  const auto run = [&](at::Tensor value) {
    for (int l = 0; l < static_cast<int>(specs.size()); ++l)
      value = build_layer(specs, l, 0)->forward(value, {});
    return value;
  };
  at::Tensor tokens = test::SyntheticTokens().input(0, 0);
  const at::Tensor before = run(tokens);
  tokens = tokens.clone();
  tokens.select(1, 5).fill_(31);
  const at::Tensor after = run(tokens);
  CHECK(at::equal(before.slice(1, 0, 5), after.slice(1, 0, 5)));
  CHECK_FALSE(at::equal(before.slice(1, 5), after.slice(1, 5)));
}

}  // namespace gpt_test
