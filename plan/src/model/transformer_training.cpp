#include "pipewright/plan/model/transformer_training.hpp"

#include <algorithm>

namespace pipewright::plan {

int usual_sequence(const TransformerConfig& model) {
  constexpr int usual = 2048;
  return model.learned_positions ? std::min(usual, model.longest) : usual;
}

}  // namespace pipewright::plan
