#include "carry_state.hpp"

#include <cassert>

namespace pipewright::exec {

void carry_state(const Executor& from, Executor& to) {
  const at::NoGradGuard no_grad;
  const auto old_layers = from.state(), new_layers = to.state();
  assert(old_layers.size() == new_layers.size());
  for (std::size_t layer = 0; layer < old_layers.size(); ++layer)
    for (std::size_t p = 0; p < old_layers[layer].parameters.size(); ++p)
      new_layers[layer].parameters[p].second.copy_(old_layers[layer].parameters[p].second);
  // First, as it would overwrite what the optimizer has in more bits.
  to.state_changed();
  for (std::size_t layer = 0; layer < old_layers.size(); ++layer)
    for (std::size_t s = 0; s < old_layers[layer].optimizer.size(); ++s)
      new_layers[layer].optimizer[s].value.copy_(old_layers[layer].optimizer[s].value);
  const auto [scale, good_steps] = from.loss_scale();
  to.restore_loss_scale(scale, good_steps);
}

}  // namespace pipewright::exec
