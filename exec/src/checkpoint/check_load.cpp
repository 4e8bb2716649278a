#include "pipewright/exec/checkpoint/check_load.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"

namespace pipewright::exec {
namespace {

const TensorShape* find(const LayerShape& layer, const std::string& name) {
  const auto found =
      std::find_if(layer.parameters.begin(), layer.parameters.end(),
                   [&](const TensorShape& parameter) { return parameter.name == name; });
  return found == layer.parameters.end() ? nullptr : &*found;
}

std::string in_words(const TensorShape& tensor) {
  return fmt::format("{} [{}]", word_of(tensor.dtype), fmt::join(tensor.sizes, ", "));
}

void compare_layers(std::vector<std::string>& obstacles, std::size_t index,
                    const LayerShape& stored, const LayerShape& wanted) {
  const std::string here = fmt::format("layer {} ({})", index, wanted.name);
  if (stored.name != wanted.name)
    obstacles.push_back(fmt::format("layer {} is '{}' in the checkpoint, '{}' in the model", index,
                                    stored.name, wanted.name));
  for (const TensorShape& parameter : wanted.parameters) {
    const TensorShape* const found = find(stored, parameter.name);
    if (found == nullptr)
      obstacles.push_back(fmt::format("{}: '{}' is not in the checkpoint", here, parameter.name));
    else if (!(*found == parameter))
      obstacles.push_back(fmt::format("{}: '{}' is {} in the checkpoint, {} in the model", here,
                                      parameter.name, in_words(*found), in_words(parameter)));
  }
  for (const TensorShape& parameter : stored.parameters)
    if (find(wanted, parameter.name) == nullptr)
      obstacles.push_back(fmt::format("{}: '{}' is not in the model", here, parameter.name));
}

}  // namespace

LayerShape shape_of(const LayerState& layer) {
  LayerShape shape{layer.name, {}};
  for (const NamedTensor& parameter : layer.parameters)
    shape.parameters.push_back(
        {parameter.name, parameter.value.scalar_type(), parameter.value.sizes().vec()});
  return shape;
}

LoadCheck check_load(const Checkpoint& checkpoint, const std::vector<LayerShape>& wanted,
                     const TrainingState& wanted_training) {
  LoadCheck check;
  const auto compare = [](std::vector<std::string>& reasons, const char* what, const auto& stored,
                          const auto& asked) {
    if (stored != asked)
      reasons.push_back(fmt::format("{}: {} in the checkpoint, {} requested", what, stored, asked));
  };
  const std::vector<LayerShape> stored = checkpoint.layers();
  compare(check.obstacles, "layers", stored.size(), wanted.size());
  for (std::size_t i = 0; i < std::min(stored.size(), wanted.size()); ++i)
    compare_layers(check.obstacles, i, stored[i], wanted[i]);

  const TrainingState& then = checkpoint.training();
  const TrainingState& now = wanted_training;
  compare(check.obstacles, "optimizer", then.optimizer, now.optimizer);
  compare(check.differences, "precision", then.precision, now.precision);
  compare(check.differences, "seed", then.seed, now.seed);
  compare(check.differences, "microbatches", then.microbatches, now.microbatches);
  compare(check.differences, "microbatch size", then.microbatch_size, now.microbatch_size);
  compare(check.differences, "gradient groups", then.gradient_groups, now.gradient_groups);
  compare(check.differences, "tensor groups", then.tensor_groups, now.tensor_groups);
  if (!then.device.empty() && !now.device.empty())
    compare(check.differences, "computed with", then.device, now.device);
  return check;
}

}  // namespace pipewright::exec
