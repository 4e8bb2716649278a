#include "progress.hpp"

#include <algorithm>

namespace pipewright::plan::zero_bubble {

void Progress::run(ActionKind kind, double arrival, const PassTimes& times) {
  const double start = std::max(free_at, arrival);
  if (!order.empty())
    idle += start - free_at;
  order.push_back(kind);
  if (kind == ActionKind::Forward) {
    free_at = start + times.forward.value;
    forward_ends.push_back(free_at);
  } else if (kind == ActionKind::InputGradient) {
    free_at = start + times.input_gradient.value;
    input_gradient_ends.push_back(free_at);
  } else {
    free_at = start + times.weight_gradient.value;
    ++weight_gradients;
  }
}

}  // namespace pipewright::plan::zero_bubble
