#include "pipewright/engine/layer_changes.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/training/buffer_restorer.hpp"
#include "pipewright/exec/training/run_again.hpp"
#include "pipewright/plan/error.hpp"
#include "rebuilt.hpp"

namespace pipewright::engine {
namespace {

using Built = std::shared_ptr<exec::Layer>;

exec::Tensors run_once_more(exec::Layer& layer, const exec::Tensors& inputs,
                            const exec::CallContext& context) {
  exec::Tensors buffers;
  for (const at::Tensor& buffer : layer.buffers())
    buffers.push_back(buffer.variable_data());
  const exec::BufferRestorer as_before(buffers);
  const at::AutoGradMode with_graph(true);
  return layer.forward_all(inputs, context);
}

exec::Tensors trained_of(const exec::Layer& layer) {
  exec::Tensors trained;
  for (const at::Tensor& parameter : layer.parameters())
    if (parameter.requires_grad())
      trained.push_back(parameter);
  return trained;
}

}  // namespace

exec::LayerSpec logged(exec::LayerSpec layer, std::function<void(const std::string&)> log) {
  const std::string what =
      layer.type.empty() ? layer.name : fmt::format("{} ({})", layer.name, layer.type);
  return rebuilt(std::move(layer), [what, log](const auto& build) -> Built {
    log(what);
    return build();
  });
}

exec::LayerSpec checkpointed(exec::LayerSpec layer, CheckpointFunction how) {
  if (layer.random)
    throw plan::InputError(
        fmt::format("layer {} is random: it cannot be recomputed alone, because its generator has "
                    "advanced; leave it out, or use only checkpoint_interval",
                    layer.name));
  if (!how)
    how = [](const CheckpointedWork& work, const exec::Tensors& inputs) {
      return exec::recompute_in_backward(work.run, inputs, work.parameters);
    };
  return rebuilt(std::move(layer), [how](const auto& build) -> Built {
    const Built inner = build();
    return std::make_shared<WrappedLayer>(
        inner, [inner, how](const exec::Tensors& inputs, const exec::CallContext& context) {
          if (!at::GradMode::is_enabled())
            return inner->forward_all(inputs, context);
          const auto has_run = std::make_shared<bool>(false);
          const auto run = [inner, context, has_run](const exec::Tensors& values) {
            return std::exchange(*has_run, true) ? run_once_more(*inner, values, context)
                                                 : inner->forward_all(values, context);
          };
          return how({run, trained_of(*inner)}, inputs);
        });
  });
}

namespace {

/// The generator's state before each layer of a sequentially built model. It is called under
/// LibTorch's lock, by one builder at a time.
class Row {
 public:
  explicit Row(std::vector<std::function<Built()>> builds) : builds_(std::move(builds)) {}

  void seed(int base_seed, int layer) {
    if (at::empty({0}).is_meta())
      return;  // meta tensors have no values
    if (states_.empty() || base_seed != base_seed_) {
      at::manual_seed(static_cast<std::uint64_t>(base_seed));
      states_ = {state()};
      base_seed_ = base_seed;
    }
    const auto wanted = static_cast<std::size_t>(layer);
    go_to(states_[std::min(wanted, states_.size() - 1)]);
    while (states_.size() <= wanted) {
      builds_[states_.size() - 1]();
      states_.push_back(state());
    }
  }

 private:
  static at::Tensor state() { return at::detail::getDefaultCPUGenerator().get_state().clone(); }
  static void go_to(const at::Tensor& state) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    generator.set_state(state);
  }

  std::vector<std::function<Built()>> builds_;
  int base_seed_ = 0;
  std::vector<at::Tensor> states_;  // by layer
};

}  // namespace

std::vector<exec::LayerSpec> seeded_in_a_row(std::vector<exec::LayerSpec> layers) {
  std::vector<std::function<Built()>> builds;
  for (const exec::LayerSpec& layer : layers)
    builds.push_back(layer.build);
  const auto row = std::make_shared<Row>(std::move(builds));
  for (exec::LayerSpec& layer : layers)
    layer.seed = [row](int base_seed, int index) { row->seed(base_seed, index); };
  return layers;
}

}  // namespace pipewright::engine
