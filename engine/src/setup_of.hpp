#pragma once

// The training setup that follows from a module and the options of an engine or of a stage.

#include "pipewright/engine/pipeline_module.hpp"
#include "pipewright/exec/training/training_setup.hpp"

namespace pipewright::engine {

/// `Options`: EngineOptions or PipelineStageOptions. Only their common fields are used.
template <class Options>
exec::TrainingSetup setup_of(const PipelineModule& module, const Options& options) {
  exec::TrainingSetup setup;
  setup.layers = module.layers();
  setup.loss = module.options().loss;
  setup.base_seed = module.options().base_seed;
  setup.optimizer = options.optimizer;
  setup.precision = options.precision;
  setup.loss_scaling = options.loss_scaling;
  setup.clip_norm = options.clip_norm;
  setup.exact = options.exact;
  setup.gradient_groups = options.gradient_groups;
  return setup;
}

}  // namespace pipewright::engine
