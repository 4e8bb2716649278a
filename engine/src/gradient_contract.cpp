#include "pipewright/engine/gradient_contract.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

#include "pipewright/exec/aborted.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

using ParameterName = std::pair<std::string, std::string>;  // layer, parameter
using GradientsByName = std::map<ParameterName, at::Tensor>;

/// The holder of a gradient: rank, stage and parameter.
using GradientPlace = std::tuple<int, int, ParameterName>;

exec::Tensors in_double(exec::Tensors tensors) {
  for (at::Tensor& tensor : tensors)
    if (tensor.defined() && at::isFloatingType(tensor.scalar_type()))
      tensor = tensor.to(at::kDouble);
  return tensors;
}

std::vector<exec::Batch> read_batch(exec::BatchSource& data, int microbatches) {
  std::vector<exec::Batch> batch;
  for (int m = 0; m < microbatches; ++m) {
    auto next = data();
    if (!next)
      throw plan::InputError(fmt::format(
          "the gradients of {} microbatches are to be checked, but the data has only {}",
          microbatches, m));
    for (auto& [name, value] : next->keywords)
      value = in_double({value}).front();
    batch.push_back({in_double(next->inputs), in_double(next->targets), next->counts,
                     std::move(next->keywords)});
  }
  return batch;
}

/// The whole model on one thread, with one autograd graph per microbatch. It shares no code with
/// stages.
class PlainModel {
 public:
  explicit PlainModel(const exec::TrainingSetup& setup) : setup_(setup) {
    for (int layer = 0; layer < static_cast<int>(setup.layers.size()); ++layer)
      layers_.push_back(exec::build_layer(setup, layer));
  }

  /// Returns the gradients of a microbatch's mean loss.
  GradientsByName gradients_of(const exec::Batch& batch, int step, int microbatch) const {
    const at::AutoGradMode with_graph(true);
    exec::Tensors values = batch.inputs;
    for (std::size_t layer = 0; layer < layers_.size(); ++layer)
      values = exec::run_layer(
          setup_.layers[layer], *layers_[layer], static_cast<int>(layer), setup_.base_seed, values,
          {.step = step, .microbatch = microbatch, .keywords = &batch.keywords});
    loss_of(setup_, values, batch.targets).backward();
    return taken();
  }

 private:
  /// Moves the gradients out by the names that a hook sees. A tied weight's are summed over its
  /// layers.
  GradientsByName taken() const {
    GradientsByName found;
    for (std::size_t layer = 0; layer < layers_.size(); ++layer)
      for (auto& parameter : layers_[layer]->named_parameters()) {
        if (!parameter.value().requires_grad())
          continue;
        at::Tensor& own = parameter.value().mutable_grad();
        at::Tensor& sum =
            found[exec::owner_name(setup_.layers, static_cast<int>(layer), parameter.key())];
        if (!sum.defined())
          sum = at::zeros_like(parameter.value());
        if (own.defined())
          sum = sum + own;
        own.reset();
      }
    return found;
  }

  const exec::TrainingSetup& setup_;
  std::vector<std::shared_ptr<exec::Layer>> layers_;
};

/// Collects the gradients with which the ranks of this process stepped.
class SeenGradients {
 public:
  struct Gradient {
    at::Tensor value;
    std::int64_t begin, whole;
  };

  void add(const exec::StepGradients& shown) {
    const std::lock_guard lock(mutex_);
    for (const exec::NamedGradient& gradient : shown.gradients)
      all_[{shown.rank, shown.stage, {gradient.what.layer, gradient.what.name}}] = {
          gradient.value.detach().to(at::kCPU, at::kDouble, /*non_blocking=*/false, /*copy=*/true),
          gradient.begin, gradient.whole};
  }
  std::map<GradientPlace, Gradient> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(all_, {});
  }

 private:
  std::mutex mutex_;
  std::map<GradientPlace, Gradient> all_;
};

/// The factor of the expected gradient in a gradient, and whether there is a remainder.
struct Share {
  double factor = 1;
  bool is_mixed = false;
};

Share share_of(const at::Tensor& found, const at::Tensor& expected, double tolerance) {
  const double length = expected.norm().item<double>();
  if (length == 0) {
    const double own = found.norm().item<double>();
    return {own == 0 ? 1.0 : 0.0, !(own == 0)};
  }
  const double factor = (found * expected).sum().item<double>() / (length * length);
  const double rest = (found - factor * expected).norm().item<double>() / length;
  return {std::abs(factor - 1) < tolerance ? 1 : factor,
          !(rest < tolerance * std::max(1.0, std::abs(factor)))};
}

/// Compares the gradients of each step and collects faults.
class Audit {
 public:
  Audit(GradientContract& contract, double tolerance)
      : contract_(contract), tolerance_(tolerance) {}

  /// `microbatch`: the only microbatch with a weight, or empty if all have one.
  void look(const std::map<GradientPlace, SeenGradients::Gradient>& seen,
            const GradientsByName& expected, std::optional<int> microbatch, bool sees_all) {
    contract_.checked = std::max(contract_.checked, static_cast<int>(seen.size()));
    std::map<ParameterName, bool> stepped;
    for (const auto& [place, gradient] : seen) {
      const auto& [rank, stage, name] = place;
      stepped[name] = true;
      const at::Tensor flat = expected.at(name).reshape(-1);
      const at::Tensor wanted =
          gradient.whole < 0 ? flat : flat.narrow(0, gradient.begin, gradient.value.numel());
      note(place, share_of(gradient.value.reshape(-1), wanted, tolerance_), microbatch);
    }
    for (const auto& [name, gradient] : expected)
      if (sees_all && !stepped[name])
        note({-1, 0, name}, {0, false}, microbatch);
  }

  void finish() {
    for (auto& [place, own] : faults_) {
      // A fault of a single microbatch explains that of the batch.
      const bool has_microbatch = own.size() > 1 || !own.front().microbatches.empty();
      for (GradientFault& fault : own)
        if (!has_microbatch || !fault.microbatches.empty())
          contract_.faults.push_back(std::move(fault));
    }
  }

 private:
  void note(const GradientPlace& place, const Share& share, std::optional<int> microbatch) {
    if (share.factor == 1 && !share.is_mixed)
      return;
    const auto& [rank, stage, name] = place;
    auto& own = faults_[place];
    for (GradientFault& fault : own)
      if (microbatch && std::abs(fault.factor - share.factor) < tolerance_ &&
          fault.is_mixed == share.is_mixed && !fault.microbatches.empty())
        return fault.microbatches.push_back(*microbatch);
    own.push_back({rank, stage, name.first, name.second,
                   microbatch ? std::vector<int>{*microbatch} : std::vector<int>(), share.factor,
                   share.is_mixed});
  }

  GradientContract& contract_;
  double tolerance_;
  std::map<GradientPlace, std::vector<GradientFault>> faults_;
};

void require_whole_layers(const PipelineModule& module, const EngineOptions& options) {
  if (module.shards() > 1 || options.execution.expert_ranks > 1)
    throw plan::InputError(
        "the gradients of layers that are partitioned among ranks cannot be checked: use one "
        "tensor-parallel and one expert-parallel rank");
}

/// Returns options under which parameters do not change.
EngineOptions for_audit(EngineOptions options, SeenGradients& seen) {
  options.precision = at::kDouble;
  options.loss_scaling = {};
  options.clip_norm = 0;
  options.loss = exec::LossOf::Mean;
  options.optimizer = {.kind = plan::Optimizer::Sgd, .learning_rate = 0, .weight_decay = 0};
  options.before_step = [&seen, heard = options.before_step](const exec::StepGradients& shown) {
    if (heard)
      heard(shown);
    seen.add(shown);
  };
  return options;
}

}  // namespace

GradientContract gradient_contract(const PipelineModule& module, EngineOptions options,
                                   exec::BatchSource data, double tolerance) {
  require_whole_layers(module, options);
  const bool sees_all = !options.execution.only_rank;
  SeenGradients seen;
  PipelineEngine engine(module, for_audit(std::move(options), seen));
  const int count = engine.microbatches() * module.replicas();
  const std::vector<exec::Batch> batch = read_batch(data, count);
  const PlainModel plain(engine.setup());
  GradientContract contract{count, 0, {}};
  Audit audit(contract, tolerance);

  const auto at_step = [&](const auto& counts_of) {
    const int step = engine.next_step();
    std::vector<exec::Batch> weighed = batch;
    for (int m = 0; m < count; ++m)
      weighed[static_cast<std::size_t>(m)].counts = counts_of(m);
    engine.set_data(batches_of(std::move(weighed)));
    if (!engine.train_batch())
      throw exec::Aborted("stopped");
    return step;
  };
  for (int one = 0; one < count; ++one) {
    const int step = at_step([&](int m) { return m == one ? 1.0 : 0.0; });
    audit.look(seen.take(), plain.gradients_of(batch[static_cast<std::size_t>(one)], step, one),
               one, sees_all);
  }

  const int step = at_step([&](int m) { return batch[static_cast<std::size_t>(m)].counts; });
  double counted = 0;
  for (const exec::Batch& each : batch)
    counted += each.counts;
  GradientsByName expected;
  for (int m = 0; m < count; ++m) {
    const exec::Batch& own = batch[static_cast<std::size_t>(m)];
    for (const auto& [name, gradient] : plain.gradients_of(own, step, m)) {
      at::Tensor& sum = expected[name];
      const at::Tensor part = gradient * (own.counts / counted);
      sum = sum.defined() ? sum + part : part;
    }
  }
  audit.look(seen.take(), expected, {}, sees_all);
  audit.finish();
  return contract;
}

std::string to_string(const GradientContract& contract) {
  if (contract.holds())
    return fmt::format("all {} gradients of {} microbatches are right\n", contract.checked,
                       contract.microbatches);
  std::string text;
  for (const GradientFault& fault : contract.faults) {
    text += fault.rank < 0 ? std::string("no rank")
                           : fmt::format("rank {}, stage {}", fault.rank, fault.stage);
    text += fmt::format(", {}.{}: ", fault.layer, fault.parameter);
    if (fault.microbatches.empty())
      text += "the whole batch";
    else
      text += fmt::format("microbatch{} {}", fault.microbatches.size() == 1 ? "" : "es",
                          fmt::join(fault.microbatches, ", "));
    if (fault.factor == 0 && !fault.is_mixed)
      text += " lost";
    else
      text += fmt::format(" times {:.6g}", fault.factor);
    text += fault.is_mixed ? ", plus an unrelated component\n" : "\n";
  }
  return text;
}

}  // namespace pipewright::engine
