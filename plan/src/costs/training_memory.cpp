#include "pipewright/plan/costs/training_memory.hpp"

namespace pipewright::plan {

const std::vector<std::string>& optimizers() {
  static const std::vector<std::string> names{"adamw", "sgd", "sgd-momentum"};
  return names;
}

const std::vector<std::string>& precisions() {
  static const std::vector<std::string> names{"full", "mixed", "mixed-fp16"};
  return names;
}

const std::vector<std::string>& local_transfers() {
  static const std::vector<std::string> names{"reference", "copy"};
  return names;
}

std::string to_string(Optimizer optimizer) {
  return optimizers()[static_cast<std::size_t>(optimizer)];
}

std::string to_string(Precision precision) {
  return precisions()[static_cast<std::size_t>(precision)];
}

std::string to_string(TensorTransfer local_transfer) {
  return local_transfers()[static_cast<std::size_t>(local_transfer)];
}

int states_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::AdamW:
      return 2;
    case Optimizer::SgdMomentum:
      return 1;
    case Optimizer::Sgd:
      return 0;
  }
  return 0;
}

}  // namespace pipewright::plan
