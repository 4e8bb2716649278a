#include "pipewright/engine/skips.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "pipewright/engine/module_layers.hpp"
#include "pipewright/plan/error.hpp"
#include "rebuilt.hpp"

namespace pipewright::engine {
namespace {

/// Returns how many of the input tensors bypass a layer.
using Passing = std::function<std::ptrdiff_t(std::ptrdiff_t tensors)>;

/// The layer sees only the first tensors; the last ones bypass it.
exec::LayerSpec with_passing(const exec::LayerSpec& spec, const Passing& passing) {
  return rebuilt(spec, [passing](const auto& build) -> std::shared_ptr<exec::Layer> {
    const auto inner = build();
    return std::make_shared<WrappedLayer>(
        inner, [inner, passing](const exec::Tensors& inputs, const exec::CallContext& context) {
          const auto border = inputs.end() - passing(std::ssize(inputs));
          exec::Tensors outputs = inner->forward_all({inputs.begin(), border}, context);
          outputs.insert(outputs.end(), border, inputs.end());
          return outputs;
        });
  });
}

exec::LayerSpec push_layer(const std::string& name) {
  return function_layer("push " + name, [](const exec::Tensors& inputs) {
    exec::Tensors outputs = inputs;
    outputs.push_back(inputs.front());
    return outputs;
  });
}

/// `from_end`: position of the skip, 1 for the last tensor.
exec::LayerSpec pop_layer(const PopSkip& pop, std::ptrdiff_t from_end) {
  return function_layer("pop " + pop.name,
                        [combine = pop.combine, from_end](const exec::Tensors& inputs) {
                          exec::Tensors outputs = inputs;
                          outputs.erase(outputs.end() - from_end);
                          outputs.front() = combine(inputs.front(), *(inputs.end() - from_end));
                          return outputs;
                        });
}

/// Visits the items and tracks the names of open skips, the earliest first.
class SkipTracker {
 public:
  std::optional<exec::LayerSpec> operator()(const exec::LayerSpec& layer) const {
    const std::ptrdiff_t count = std::ssize(open_);
    return count == 0 ? layer : with_passing(layer, [count](std::ptrdiff_t) { return count; });
  }

  std::optional<exec::LayerSpec> operator()(const PipeSplit&) const { return {}; }

  std::optional<exec::LayerSpec> operator()(const PushSkip& push) {
    if (std::find(open_.begin(), open_.end(), push.name) != open_.end())
      throw plan::InputError(
          fmt::format("skip \"{}\" is pushed again before it is popped", push.name));
    open_.push_back(push.name);
    return push_layer(push.name);
  }

  std::optional<exec::LayerSpec> operator()(const PopSkip& pop) {
    const auto found = std::find(open_.begin(), open_.end(), pop.name);
    if (found == open_.end())
      throw plan::InputError(
          fmt::format("skip \"{}\" is popped, but it is not open there{} (open: {})", pop.name,
                      plan::did_you_mean(pop.name, open_),
                      open_.empty() ? "none" : fmt::format("{}", fmt::join(open_, ", "))));
    const auto from_end = open_.end() - found;
    open_.erase(found);
    return pop_layer(pop, from_end);
  }

  void check_all_popped() const {
    if (!open_.empty())
      throw plan::InputError(
          fmt::format("pushed but never popped: skip \"{}\"", fmt::join(open_, "\", \"")));
  }

 private:
  std::vector<std::string> open_;
};

}  // namespace

std::vector<exec::LayerSpec> with_skips(const std::vector<ModelItem>& items) {
  SkipTracker tracker;
  std::vector<exec::LayerSpec> layers;
  for (const ModelItem& item : items)
    if (auto layer = std::visit(tracker, item))
      layers.push_back(std::move(*layer));
  tracker.check_all_popped();
  return layers;
}

std::vector<int> boundaries_at_marks(const std::vector<ModelItem>& items) {
  std::vector<int> boundaries{0};
  int layers = 0;
  for (const ModelItem& item : items)
    if (!std::holds_alternative<PipeSplit>(item))
      ++layers;
    else if (layers == boundaries.back())
      throw plan::InputError(fmt::format("there is no layer {} split {}: leave it out",
                                         layers == 0 ? "before" : "between the previous split and",
                                         boundaries.size()));
    else
      boundaries.push_back(layers);
  if (layers == boundaries.back())
    throw plan::InputError(
        fmt::format("there is no layer after split {}: leave it out", boundaries.size() - 1));
  boundaries.push_back(layers);
  return boundaries;
}

exec::LayerSpec relay(const exec::LayerSpec& layer) {
  return with_passing(
      layer, [](std::ptrdiff_t tensors) { return std::max<std::ptrdiff_t>(tensors - 1, 0); });
}

}  // namespace pipewright::engine
