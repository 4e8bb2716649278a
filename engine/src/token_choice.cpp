#include "pipewright/engine/token_choice.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "pipewright/exec/hash.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

/// Returns a random number in [0, 1) with 53 bits.
double drawn(std::int64_t seed, std::int64_t sequence, std::int64_t position) {
  return std::ldexp(static_cast<double>(exec::hash_of({seed, sequence, position}) >> 11), -53);
}

/// Returns the `count` most likely tokens, in ascending order of tokens.
std::vector<std::int64_t> likeliest(const float* logits, std::int64_t words, std::int64_t count) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(words));
  std::iota(tokens.begin(), tokens.end(), 0);
  if (count >= words)
    return tokens;
  const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(tokens.begin(), end, tokens.end(), [&](std::int64_t a, std::int64_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  tokens.erase(end, tokens.end());
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

}  // namespace

void check(const TokenChoice& how) {
  if (!(how.temperature >= 0) || !std::isfinite(how.temperature))
    throw plan::InputError(
        fmt::format("temperature is {}, but must be at least 0 (0: always the most likely token)",
                    how.temperature));
  if (how.top_k < 0)
    throw plan::InputError(
        fmt::format("top_k is {}, but must be at least 0 (0: all tokens)", how.top_k));
}

std::int64_t choose_token(const at::Tensor& logits, const TokenChoice& how, std::int64_t sequence,
                          std::int64_t position) {
  const at::Tensor row = logits.reshape(-1).to(at::kFloat).contiguous();
  const float* const numbers = row.const_data_ptr<float>();
  const std::int64_t words = row.numel();
  if (!std::all_of(numbers, numbers + words, [](float logit) { return std::isfinite(logit); }))
    throw plan::InputError(
        fmt::format("a logit of token {} of sequence {} is not finite", position, sequence));
  if (how.temperature == 0)
    return std::max_element(numbers, numbers + words) - numbers;
  const auto tokens = likeliest(numbers, words, how.top_k > 0 ? how.top_k : words);
  const double largest = *std::max_element(numbers, numbers + words);
  std::vector<double> sums;  // cumulative weights
  double sum = 0;
  for (const std::int64_t token : tokens)
    sums.push_back(sum += std::exp((numbers[token] - largest) / how.temperature));
  const auto found =
      std::upper_bound(sums.begin(), sums.end(), drawn(how.seed, sequence, position) * sum);
  return tokens[static_cast<std::size_t>(std::min(found - sums.begin(), std::ssize(tokens) - 1))];
}

}  // namespace pipewright::engine
