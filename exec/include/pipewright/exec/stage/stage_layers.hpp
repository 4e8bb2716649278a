#pragma once

// The layers of a stage, and their trained parameters. Layers are numbered over the whole model;
// the loss has the number after the last layer.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/exec/stage/stage_spec.hpp"
#include "pipewright/exec/training/training_setup.hpp"

namespace pipewright::exec {

struct TrainedParameter {
  at::Tensor value;
  int layer = 0;
  std::string name;                       // in its layer
  std::optional<CutParameter> cut;        // how ranks partition it; none: each has all of it
  std::optional<std::size_t> tied_place;  // its index among the tied weights of its layer
};

class StageLayers {
 public:
  /// Builds the layers on the stage's device. Keeps both references.
  StageLayers(const StageSpec& spec, const TrainingSetup& setup);

  const std::vector<std::shared_ptr<Layer>>& all() const { return layers_; }
  Layer& at(int layer) const { return *layers_[static_cast<std::size_t>(layer - spec_.first)]; }
  const LayerSpec& spec_of(int layer) const {
    return setup_.layers[static_cast<std::size_t>(layer)];
  }
  /// Returns the parameters in the order of the optimizer's parameters, and so of layers.
  const std::vector<TrainedParameter>& trained() const { return trained_; }

  bool are_first() const { return spec_.first == 0 && spec_.index == 0; }
  bool are_last() const { return spec_.last == loss(); }
  int loss() const { return static_cast<int>(setup_.layers.size()); }
  /// Returns the layer after the stage's last one; on the last stage, the layer after the loss.
  int end() const { return are_last() ? spec_.last + 1 : spec_.last; }
  /// Returns the first layer with a trained parameter, or `end()` if none exists.
  int first_trained() const { return trained_.empty() ? end() : trained_.front().layer; }
  bool take_keywords() const { return take_keywords_; }
  bool can_be_replayed() const;

  /// Switches between training and evaluation.
  void train(bool on);
  /// Returns the buffers of layers [first, last), such as a batch norm's running means.
  Tensors buffers(int first, int last) const;
  /// Runs one layer, or computes the loss.
  Tensors run(int layer, const Tensors& inputs, const Tensors& targets,
              const CallContext& context) const;

 private:
  const StageSpec& spec_;
  const TrainingSetup& setup_;
  std::vector<std::shared_ptr<Layer>> layers_;
  std::vector<TrainedParameter> trained_;
  std::vector<Tensors> buffers_;  // by layer
  bool take_keywords_ = false;
};

/// Returns the tensors with floating-point ones cast to `type` and all others unchanged.
Tensors cast_floats(Tensors values, at::ScalarType type);

}  // namespace pipewright::exec
