#include "pipewright/engine/module_state.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "pipewright/engine/models/hugging_face.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/exec/rank/training_state.hpp"
#include "pipewright/exec/stage/stage.hpp"
#include "pipewright/exec/stage/stage_state.hpp"
#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

std::string full_name(const std::string& layer, const std::string& tensor) {
  return layer + "." + tensor;
}

/// A tensor of a stage.
struct HeldTensor {
  int layer = 0;
  std::string in_layer;
  std::string name;
  exec::TensorPart part;
  at::Tensor value;
  bool frozen = false;  // a parameter that requires no gradient
};

std::vector<HeldTensor> held_by(const exec::Stage& stage, const exec::TrainingSetup& setup) {
  std::vector<HeldTensor> held;
  for (int index = stage.spec().first; index < stage.spec().last; ++index) {
    const exec::Layer& layer = stage.layers().at(index);
    const auto parameters = layer.named_parameters();
    for (const auto& [name, tensor] : exec::tensors_of(layer))
      held.push_back({.layer = index,
                      .in_layer = name,
                      .name = full_name(setup.layers[static_cast<std::size_t>(index)].name, name),
                      .part = exec::part_held(stage, layer, name),
                      .value = tensor,
                      .frozen = parameters.contains(name) && !tensor.requires_grad()});
  }
  return held;
}

/// The local parts of a tensor.
struct Parts {
  exec::TensorPart cut;
  std::map<int, at::Tensor> by_index;

  at::Tensor together() const {
    if (static_cast<int>(by_index.size()) < cut.count)
      return by_index.begin()->second;
    exec::Tensors values;
    for (const auto& [index, value] : by_index)
      values.push_back(value);
    return joined(values, cut);
  }
};

std::set<std::string> all_names(const exec::TrainingSetup& setup) {
  std::set<std::string> names;
  for (const exec::LayerShape& layer : exec::shapes_of(setup))
    for (const exec::TensorShape& tensor : layer.parameters)
      names.insert(full_name(layer.name, tensor.name));
  return names;
}

/// Returns the names that a file may use for this tensor, by priority.
std::vector<std::string> names_for(const HeldTensor& held, const exec::TrainingSetup& setup) {
  const exec::LayerSpec& own = setup.layers[static_cast<std::size_t>(held.layer)];
  std::vector<std::string> names;
  if (const auto tied = exec::tied_place(own, held.in_layer))
    for (const exec::LayerSpec& layer : setup.layers)
      if (layer.tied_key == own.tied_key && *tied < layer.tied_weights.size())
        names.push_back(full_name(layer.name, layer.tied_weights[*tied]));
  if (names.empty())
    names.push_back(held.name);
  return names;
}

using Sizes = std::vector<std::int64_t>;

/// The contents of a file, under our names.
class LoadedFile {
 public:
  LoadedFile(const exec::NamedWeights& file, const LoadOptions& options)
      : file_(file), options_(options) {
    for (const auto& [theirs, sizes] : file.sizes) {
      const std::string ours = options.rename ? options.rename(theirs) : theirs;
      if (ours.empty())
        continue;
      const auto [known, is_new] = theirs_.try_emplace(ours, theirs);
      if (!is_new)
        throw plan::InputError(fmt::format("{}: '{}' and '{}' would both become '{}'", file.where,
                                           known->second, theirs, ours));
    }
  }

  const std::map<std::string, std::string>& theirs() const { return theirs_; }

  /// Returns nothing if the file does not have the tensor.
  std::optional<Sizes> sizes_of(const HeldTensor& held, const exec::TrainingSetup& setup) const {
    if (const auto name = name_of(held, setup); by_name() && name)
      return file_.sizes.at(*name);
    const auto value = by_name() ? std::nullopt : options_.load(held.name, file_);
    return value ? std::optional(value->sizes().vec()) : std::nullopt;
  }
  std::optional<at::Tensor> find(const HeldTensor& held, const exec::TrainingSetup& setup) const {
    if (options_.load)
      return options_.load(held.name, file_);
    const auto name = name_of(held, setup);
    return name ? std::optional(file_.read(*name)) : std::nullopt;
  }

  const exec::NamedWeights& file() const { return file_; }
  bool by_name() const { return !options_.load; }

 private:
  /// Returns the tensor's name in the file.
  std::optional<std::string> name_of(const HeldTensor& held,
                                     const exec::TrainingSetup& setup) const {
    for (const std::string& name : names_for(held, setup))
      if (const auto found = theirs_.find(name); found != theirs_.end())
        return found->second;
    return {};
  }

  const exec::NamedWeights& file_;
  const LoadOptions& options_;
  std::map<std::string, std::string> theirs_;  // keys: our names
};

void require_sizes(const exec::NamedWeights& file, const HeldTensor& held, const Sizes& given) {
  const Sizes own = held.value.sizes().vec();
  const Sizes whole = exec::whole_sizes(own, held.part);
  if (given != whole && given != own)
    throw plan::InputError(fmt::format("{}: '{}' is [{}], the model has [{}]", file.where,
                                       held.name, fmt::join(given, ", "), fmt::join(whole, ", ")));
}

at::Tensor part_for(const HeldTensor& held, const at::Tensor& given) {
  if (held.part.count == 1 || given.sizes() == held.value.sizes())
    return given;
  return exec::part_of(given, cut_of(held.part),
                       {held.part.index, held.part.count, held.part.experts});
}

/// Updates the master copies of the loaded parameters only.
void refresh_masters_of(exec::Stage& stage, const std::set<std::pair<int, std::string>>& given) {
  exec::Optimizer& optimizer = stage.optimizer();
  std::vector<std::pair<at::Tensor, at::Tensor>> stay;
  for (const exec::Optimizer::State& state : optimizer.states())
    if (const auto& own = stage.layers().trained()[state.parameter];
        state.name == "master" && !given.contains({own.layer, own.name}))
      stay.emplace_back(state.value, state.value.clone());
  optimizer.refresh_masters();
  for (const auto& [value, before] : stay)
    value.copy_(before);
}

void load_stage(exec::Stage& stage, const exec::TrainingSetup& setup, const LoadedFile& given) {
  const at::NoGradGuard no_grad;
  std::set<std::pair<int, std::string>> loaded;
  for (const HeldTensor& held : held_by(stage, setup)) {
    const auto value = given.find(held, setup);
    if (!value)
      continue;
    require_sizes(given.file(), held, value->sizes().vec());
    held.value.copy_(part_for(held, *value));
    loaded.emplace(held.layer, held.in_layer);
  }
  refresh_masters_of(stage, loaded);
}

/// Compares names: missing are those here but not in the file, unexpected those in the file but not
/// in the model.
IncompatibleKeys compared(const exec::Executor& executor, const exec::TrainingSetup& setup,
                          const LoadedFile& given) {
  std::set<std::string> missing;
  executor.visit_stages([&](exec::Stage& stage) {
    for (const HeldTensor& held : held_by(stage, setup))
      if (const auto sizes = given.sizes_of(held, setup))
        require_sizes(given.file(), held, *sizes);
      else
        missing.insert(held.name);
  });
  IncompatibleKeys keys{.missing = {missing.begin(), missing.end()}, .unexpected = {}};
  if (!given.by_name())
    return keys;
  const std::set<std::string> known = all_names(setup);
  for (const auto& [ours, theirs] : given.theirs())
    if (!known.contains(ours))
      keys.unexpected.push_back(theirs);
  return keys;
}

/// Returns, for example, "missing 'a', 'b' and 7 more".
std::string listed(const char* what, const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(most, names.size())));
  return fmt::format("{} '{}'{}", what, fmt::join(shown, "', '"),
                     names.size() > most ? fmt::format(" and {} more", names.size() - most) : "");
}

void require_none(const exec::NamedWeights& file, const IncompatibleKeys& keys) {
  std::vector<std::string> faults;
  if (!keys.missing.empty())
    faults.push_back(listed("missing:", keys.missing));
  if (!keys.unexpected.empty())
    faults.push_back(listed("no layer has:", keys.unexpected));
  if (!faults.empty())
    throw plan::InputError(
        fmt::format("{}: {}; load with strict = false to leave these as they are", file.where,
                    fmt::join(faults, "; ")));
}

}  // namespace

exec::NamedWeights weights_of(const exec::Checkpoint& checkpoint) {
  struct Place {
    int layer = 0;
    std::string in_layer;
  };
  exec::NamedWeights weights{.where = checkpoint.folder().string()};
  std::map<std::string, Place> places;
  const auto layers = checkpoint.layers();
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    for (const exec::TensorShape& tensor : layers[layer].parameters) {
      const std::string name = full_name(layers[layer].name, tensor.name);
      weights.sizes[name] = tensor.sizes;
      places[name] = {static_cast<int>(layer), tensor.name};
    }
  struct Read {
    int layer = -1;
    exec::StateDict tensors;
  };
  weights.read = [places, layers_of_it = layers_of(checkpoint),
                  last = std::make_shared<Read>()](const std::string& name) {
    const Place& place = places.at(name);
    if (last->layer != place.layer)
      *last = {place.layer, layers_of_it(place.layer)};
    return last->tensors.at(place.in_layer);
  };
  return weights;
}

exec::StateDict module_state(const exec::Executor& executor, const exec::TrainingSetup& setup,
                             const StateOptions& options) {
  std::map<std::string, Parts> all;
  executor.visit_stages([&](exec::Stage& stage) {
    for (const HeldTensor& held : held_by(stage, setup)) {
      if (held.frozen && !options.frozen)
        continue;
      Parts& parts = all.try_emplace(held.name, Parts{held.part, {}}).first->second;
      if (!parts.by_index.contains(held.part.index))
        parts.by_index[held.part.index] =
            held.value.detach().to(at::kCPU, held.value.scalar_type(), /*non_blocking=*/false,
                                   /*copy=*/true, at::MemoryFormat::Contiguous);
    }
  });
  exec::StateDict state;
  for (const auto& [name, parts] : all)
    state[name] = parts.together();
  return state;
}

IncompatibleKeys load_module_state(exec::Executor& executor, const exec::TrainingSetup& setup,
                                   exec::NamedWeights file, const LoadOptions& options,
                                   const std::vector<StateHooks>& hooks) {
  for (const StateHooks& hook : hooks)
    if (hook.loading)
      hook.loading(file);
  const LoadedFile given(file, options);
  IncompatibleKeys keys = compared(executor, setup, given);
  for (const StateHooks& hook : hooks)
    if (hook.loaded)
      hook.loaded(keys);
  if (options.strict)
    require_none(file, keys);
  executor.visit_stages([&](exec::Stage& stage) { load_stage(stage, setup, given); });
  return keys;
}

}  // namespace pipewright::engine
