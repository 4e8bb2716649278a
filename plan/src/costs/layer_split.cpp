#include "pipewright/plan/costs/layer_split.hpp"

#include <fmt/format.h>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

void check_at_least(int value, int least, const char* what) {
  if (value < least)
    throw InputError(fmt::format("{} is {}, the least is {}", what, value, least));
}

void check_fits(const char* what, int weight, int shorter) {
  if (weight > shorter)
    throw InputError(
        fmt::format("{} {} is more than the {} layers of a shorter stage", what, weight, shorter));
}

}  // namespace

std::vector<int> layer_split(int stages, int layers, int input_weight, int output_weight) {
  check_at_least(stages, 1, "the number of stages");
  check_at_least(layers, 1, "the number of layers");
  check_at_least(input_weight, 0, "the input weight");
  check_at_least(output_weight, 0, "the output weight");
  if (stages == 1)
    return {layers};
  const int effective = layers + input_weight + output_weight;
  if (stages > effective)
    throw InputError(fmt::format("{} stages asked for, but layers, input and output come to {}",
                                 stages, effective));
  const int shorter = effective / stages;
  check_fits("the input weight", input_weight, shorter);
  check_fits("the output weight", output_weight, shorter);

  std::vector<int> split;
  split.reserve(static_cast<std::size_t>(stages));
  for (int stage = 0; stage < stages; ++stage)
    split.push_back(shorter + (stage < effective % stages ? 1 : 0));
  split.front() -= input_weight;
  split.back() -= output_weight;
  return split;
}

}  // namespace pipewright::plan
