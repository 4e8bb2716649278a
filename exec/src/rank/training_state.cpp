#include "pipewright/exec/rank/training_state.hpp"

#include <algorithm>

#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/exec/stage/stage_state.hpp"
#include "pipewright/exec/training/without_memory.hpp"

namespace pipewright::exec {

TrainingState training_state(const TrainingSetup& setup, const plan::Program& program, int replicas,
                             int next_step, const std::string& device) {
  const auto groups = gradient_groups(program, setup, replicas);
  return {.step = next_step,
          .seed = setup.base_seed,
          .microbatches = replicas * program.microbatches,
          .microbatch_size = setup.microbatch_size,
          .gradient_groups = 1 + *std::max_element(groups.begin(), groups.end()),
          .tensor_groups = std::max(1, setup.tensor_groups),
          .loss_scale = setup.loss_scaling.scale,
          .optimizer = name_of(setup.optimizer),
          .precision = word_of(setup.precision),
          .device = device};
}

std::vector<LayerShape> shapes_of(const TrainingSetup& setup) {
  TrainingSetup unread = setup;  // shapes do not need the numbers of a file
  for (LayerSpec& layer : unread.layers)
    layer.fill = {};
  std::vector<LayerShape> shapes;
  for (int layer = 0; layer < static_cast<int>(setup.layers.size()); ++layer) {
    const auto built = build_without_memory(unread, layer);
    LayerShape& shape =
        shapes.emplace_back(LayerShape{setup.layers[static_cast<std::size_t>(layer)].name, {}});
    for (const auto& [name, tensor] : tensors_of(*built))
      shape.parameters.push_back({name, tensor.scalar_type(), tensor.sizes().vec()});
  }
  return shapes;
}

}  // namespace pipewright::exec
