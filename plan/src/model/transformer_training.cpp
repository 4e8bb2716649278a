#include "pipewright/plan/model/transformer_training.hpp"

#include <algorithm>

namespace pipewright::plan {

double rate_of(ProductPrecision precision) {
  switch (precision) {
    case ProductPrecision::Half:
      return 1;
    case ProductPrecision::Float8:
      return 2;
    case ProductPrecision::Float4:
      return 4;
    case ProductPrecision::Single:
      return 0.5;
  }
  return 1;
}

int usual_sequence(const TransformerConfig& model) {
  constexpr int usual = 2048;
  return model.learned_positions ? std::min(usual, model.longest) : usual;
}

}  // namespace pipewright::plan
