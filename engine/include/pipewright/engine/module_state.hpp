#pragma once

// A training's state by name, and functions to load it: strictly, or as far as names match.

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

/// The mismatches of a load, as in torch's load_state_dict: model names that were not given, and
/// given names that no layer of the model has.
struct IncompatibleKeys {
  std::vector<std::string> missing{};
  std::vector<std::string> unexpected{};
};

struct StateOptions {
  bool frozen = true;  // include parameters without gradients
};

struct LoadOptions {
  bool strict = true;  // reject missing and unexpected names
  /// Maps a tensor's name in the file to our name. An empty result skips the tensor. No function:
  /// names are used unchanged.
  std::function<std::string(const std::string& theirs)> rename{};
  /// Returns the whole tensor to load into our tensor `name`, instead of a lookup by name; nothing
  /// if it is missing. Called twice for each tensor of this process, to check and to load. No name
  /// is unexpected then.
  std::function<std::optional<at::Tensor>(const std::string& name, const exec::NamedWeights& file)>
      load{};
};

/// Called by the engine, in the order in which they were given (EngineOptions::hooks).
struct StateHooks {
  std::function<void(exec::StateDict& state)> saved{};      // before the state is returned
  std::function<void(exec::NamedWeights& file)> loading{};  // before anything is checked
  std::function<void(IncompatibleKeys& keys)>
      loaded{};  // before a strict load rejects the remaining names
  /// Called with the notes of a checkpoint that is about to be saved, and of one that was loaded.
  std::function<void(std::map<std::string, std::string>& notes)> saving_checkpoint{};
  std::function<void(const std::map<std::string, std::string>& notes)> loaded_checkpoint{};
};

/// Returns the weights of a checkpoint, unpartitioned; one layer is read at a time.
exec::NamedWeights weights_of(const exec::Checkpoint& checkpoint);

/// Returns copies of the parameters and buffers of this process's ranks, on the CPU, each once. A
/// partitioned tensor is joined if all parts are in this process; otherwise the local part is
/// returned. Under ZeRO-3 every process of a job must call it at the same point. Do not call it
/// during a step.
exec::StateDict module_state(const exec::Executor& executor, const exec::TrainingSetup& setup,
                             const StateOptions& options = {});

/// Loads the file's tensors into the ranks of this process: whole tensors, or parts as
/// `module_state` returns them. A tied weight may be stored under the name of any layer with its
/// key; the first layer has priority. A master copy of the optimizer is updated as well, while its
/// other state stays. Throws InputError before anything is changed for mismatched shapes, for two
/// names that map to one and, if `strict`, for all missing and unexpected names.
IncompatibleKeys load_module_state(exec::Executor& executor, const exec::TrainingSetup& setup,
                                   exec::NamedWeights file, const LoadOptions& options = {},
                                   const std::vector<StateHooks>& hooks = {});

}  // namespace pipewright::engine
