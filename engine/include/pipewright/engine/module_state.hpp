#pragma once

// What a training has learnt, by name, and the way back: strictly, or as far as names agree.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/named_weights.hpp"
#include "pipewright/exec/training/training_setup.hpp"

namespace pipewright::exec {
class Checkpoint;
class Executor;
}  // namespace pipewright::exec

namespace pipewright::engine {

/// As of torch's load_state_dict: names of the model that were not given, and given names that no
/// layer of the model has.
struct IncompatibleKeys {
  std::vector<std::string> missing{};
  std::vector<std::string> unexpected{};
};

struct StateOptions {
  bool frozen = true;  // parameters without gradients, too
};

struct LoadOptions {
  bool strict = true;  // names that are missing or unexpected are refused
  /// What we call a tensor of the file; empty: it is left out. No function: the same.
  std::function<std::string(const std::string& theirs)> rename{};
  /// Instead of names: what goes into our tensor of this name, whole. Nothing: it is missing.
  /// Called twice for each tensor that this process has, to look and to load; nothing is unexpected
  /// then.
  std::function<std::optional<at::Tensor>(const std::string& name, const exec::NamedWeights& file)>
      load{};
};

/// Called by the engine, in the order in which they were given: see EngineOptions.
struct StateHooks {
  std::function<void(exec::StateDict& state)> saved{};      // before it is handed out
  std::function<void(exec::NamedWeights& file)> loading{};  // before anything is looked at
  std::function<void(IncompatibleKeys& keys)>
      loaded{};  // before a strict load refuses what is left
  /// Notes of a checkpoint that is about to be saved, and of one that was loaded.
  std::function<void(std::map<std::string, std::string>& notes)> saving_checkpoint{};
  std::function<void(const std::map<std::string, std::string>& notes)> loaded_checkpoint{};
};

/// The weights of a checkpoint, whole, of which a layer is read at a time.
exec::NamedWeights weights_of(const exec::Checkpoint& checkpoint);

/// Copies of parameters and buffers of the ranks of this process, on the CPU, each once. What
/// shards share out is whole where all of them are here, else the part of this one. Where
/// parameters are sharded (ZeRO-3), every process of a job calls it at once. Not while a step runs.
exec::StateDict module_state(const exec::Executor& executor, const exec::TrainingSetup& setup,
                             const StateOptions& options = {});

/// Gives the ranks of this process what the file has for them: whole tensors, or parts as
/// `module_state` gives them. A tied weight is that of any layer with its key, the first one first.
/// Where the optimizer keeps a master copy, that takes the same numbers; its other states stay.
/// Throws InputError before anything is changed for shapes that differ, two names that become one
/// and, when `strict`, for all missing and unexpected names.
IncompatibleKeys load_module_state(exec::Executor& executor, const exec::TrainingSetup& setup,
                                   exec::NamedWeights file, const LoadOptions& options = {},
                                   const std::vector<StateHooks>& hooks = {});

}  // namespace pipewright::engine
