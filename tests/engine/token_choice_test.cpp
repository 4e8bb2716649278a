#include "pipewright/engine/token_choice.hpp"

#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace token_choice_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::error_of;

TEST_CASE("Without a temperature, the most likely token is chosen, the first among equals",
          "[exec]") {
  CHECK(choose_token(at::tensor({0.5F, 2.0F, 2.0F, 1.0F}), {}, 0, 0) == 1);
  CHECK(choose_token(at::tensor({-1.0, -2.0, -0.5}), {}, 3, 9) == 2);
  CHECK(choose_token(at::tensor({0.0F, 1.0F}).to(at::kBFloat16).view({1, 1, 2}), {}, 0, 0) == 1);
}

/// Returns how often each of four tokens is sampled.
std::array<double, 4> shares(const TokenChoice& how) {
  const at::Tensor logits = at::tensor({0.1, 0.2, 0.3, 0.4}).log();
  constexpr int count = 20000;
  std::array<double, 4> found{};
  for (int position = 0; position < count; ++position)
    found[static_cast<std::size_t>(choose_token(logits, how, position % 3, position))] +=
        1.0 / count;
  return found;
}

TEST_CASE("Tokens are sampled with the probabilities of the softmax", "[exec]") {
  const auto near = [](const std::array<double, 4>& found, const std::array<double, 4>& expected) {
    for (std::size_t token = 0; token < 4; ++token)
      CHECK(std::abs(found[token] - expected[token]) < 0.015);
  };
  near(shares({.temperature = 1}), {0.1, 0.2, 0.3, 0.4});
  near(shares({.temperature = 0.5}), {1.0 / 30, 4.0 / 30, 9.0 / 30, 16.0 / 30});
  near(shares({.temperature = 1, .top_k = 2}), {0, 0, 3.0 / 7, 4.0 / 7});
  CHECK(shares({.temperature = 1, .top_k = 2})[1] == 0);
  CHECK(shares({.temperature = 1, .top_k = 1})[3] > 0.9999);
}

TEST_CASE("A sample depends only on seed, sequence and position", "[exec]") {
  const at::Tensor logits = at::zeros({1000});
  const auto drawn = [&](std::int64_t seed, std::int64_t sequence, std::int64_t position) {
    return choose_token(logits, {.temperature = 1, .seed = seed}, sequence, position);
  };
  CHECK(drawn(1, 2, 3) == drawn(1, 2, 3));
  CHECK(drawn(1, 2, 3) != drawn(2, 2, 3));
  CHECK(drawn(1, 2, 3) != drawn(1, 3, 3));
  CHECK(drawn(1, 2, 3) != drawn(1, 2, 4));
}

TEST_CASE("Among equal logits, the lower tokens are in the top k", "[exec]") {
  for (int position = 0; position < 50; ++position)
    CHECK(choose_token(at::zeros({10}), {.temperature = 1, .top_k = 3}, 0, position) < 3);
}

TEST_CASE("Logits that are not finite and invalid options are rejected", "[exec]") {
  CHECK(error_of([] {
          choose_token(at::tensor({1.0, std::numeric_limits<double>::quiet_NaN()}), {}, 2, 5);
        }) == "a logit of token 5 of sequence 2 is not finite");
  CHECK(error_of([] { check({.temperature = -1}); }) ==
        "temperature is -1, but must be at least 0 (0: always the most likely token)");
  CHECK(error_of([] { check({.top_k = -1}); }) ==
        "top_k is -1, but must be at least 0 (0: all tokens)");
}

}  // namespace token_choice_test
