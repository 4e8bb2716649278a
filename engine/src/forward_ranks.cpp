#include "forward_ranks.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/cpu/core.hpp"
#include "pipewright/exec/device/gpu.hpp"
#include "pipewright/exec/stage/stage_state.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/exec/transport/in_process_transport.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

exec::TrainingSetup forward_setup(const PipelineModule& module, at::ScalarType precision) {
  exec::TrainingSetup setup;
  for (const exec::LayerSpec& layer : module.layers()) {
    if (!layer.keywords.empty())
      throw plan::InputError(fmt::format(
          "layer {} takes the keyword argument '{}', but a forward-only model receives none",
          layer.name, layer.keywords.front()));
    setup.layers.push_back(frozen(layer));  // no gradients, and no optimizer
  }
  setup.base_seed = module.options().base_seed;
  setup.precision = precision;
  setup.tensor_groups = 1;
  return setup;
}

/// Copies a training's state of a layer into the layer.
void take_layer(const exec::LayerState& from, exec::Layer& to) {
  for (const auto& [name, tensor] : exec::tensors_of(to)) {
    const auto found =
        std::find_if(from.parameters.begin(), from.parameters.end(),
                     [&](const exec::NamedTensor& each) { return each.name == name; });
    if (found == from.parameters.end() || found->part.count > 1 || found->whole >= 0)
      throw plan::InputError(
          fmt::format("layer {} ({}): '{}' is {}", from.index, from.name, name,
                      found == from.parameters.end()
                          ? "not in the snapshot"
                          : "in parts in the snapshot: take the weights of a checkpoint"));
    tensor.copy_(found->value.view(tensor.sizes()));
  }
}

}  // namespace

ForwardRanks::ForwardRanks(PipelineModule module, ForwardOptions options)
    : module_(std::move(module)),
      options_(std::move(options)),
      setup_(forward_setup(module_, options_.precision)) {
  if (module_.replicas() > 1 || module_.shards() > 1)
    throw plan::InputError(
        "a forward-only model supports neither data nor tensor parallelism: leave the axes data "
        "and "
        "tensor out of the topology");
  const auto per_rank = static_cast<std::size_t>(module_.options().stages_per_rank);
  for (int rank = 0; rank < count(); ++rank) {
    if (options_.only_rank && options_.only_rank != rank)
      continue;
    const std::size_t first = static_cast<std::size_t>(rank) * per_rank;
    Own& own = own_[rank];
    own.stream = exec::compute_stream(device_of(rank));
    const exec::OnStream stream(own.stream);
    own.stage = std::make_unique<exec::Stage>(
        exec::StageSpec{.index = rank,
                        .first = module_.boundaries()[first],
                        .last = module_.boundaries()[first + per_rank],
                        .device = device_of(rank).device,
                        .place = {.groups = 1},
                        .dynamic_shapes = true},
        setup_);
    own.stream.finish();
  }
  if (own_.empty())
    throw plan::InputError(fmt::format("this process is rank {}, but the module has {} ranks",
                                       *options_.only_rank, count()));
}

exec::RankDevice ForwardRanks::device_of(int rank) const {
  return options_.devices.empty() ? exec::RankDevice()
                                  : options_.devices.at(static_cast<std::size_t>(rank));
}

void ForwardRanks::restore(const exec::Checkpoint& checkpoint) {
  for (auto& [rank, own] : own_)
    restore_weights(*own.stage, checkpoint);
}

void ForwardRanks::take_weights(const exec::Snapshot& training) {
  const at::NoGradGuard no_grad;
  for (auto& [rank, own] : own_)
    for (int layer = own.stage->spec().first; layer < own.stage->spec().last; ++layer) {
      const auto found =
          std::find_if(training.layers.begin(), training.layers.end(),
                       [&](const exec::LayerState& each) { return each.index == layer; });
      if (found == training.layers.end())
        throw plan::InputError(fmt::format("layer {} ({}) is not in the snapshot", layer,
                                           own.stage->layers().spec_of(layer).name));
      take_layer(*found, own.stage->layers().at(layer));
    }
}

std::vector<exec::Stage*> ForwardRanks::stages() {
  std::vector<exec::Stage*> stages;
  for (auto& [rank, own] : own_)
    stages.push_back(&*own.stage);
  return stages;
}

/// Connects the rank with its neighbors and announces the transfers to the transport.
void ForwardRanks::connect(ForwardRank& rank, exec::Transport& transport) {
  if (rank.count == 1)
    return;
  if (!rank.in) {
    rank.in.emplace(transport, (rank.rank + rank.count - 1) % rank.count, rank.rank);
    rank.out.emplace(transport, rank.rank, (rank.rank + 1) % rank.count);
  }
  transport.expect(rank.rank, {rank.in->received(), rank.out->sent()}, exec::Shapes::Varying);
}

void ForwardRanks::run(const std::function<void(ForwardRank&)>& body) {
  std::shared_ptr<exec::Transport> transport = options_.transport;
  if (!transport) {
    transport = exec::make_in_process_transport(count());
    in_job_.clear();
  }
  std::mutex mutex;
  std::exception_ptr failure, consequence;
  const auto serve = [&](ForwardRank& rank) {
    at::set_num_threads(1);
    if (options_.pin_threads)
      exec::pin_rank(device_of(rank.rank).device, rank.rank, rank.count);
    try {
      const exec::OnStream stream(*rank.stream);
      const at::NoGradGuard no_grad;
      connect(rank, *transport);
      body(rank);
      rank.stream->finish();
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex);
      const bool follows = dynamic_cast<const exec::Aborted*>(&error) != nullptr;
      std::exception_ptr& why = follows ? consequence : failure;
      if (!why)
        why = std::current_exception();
      transport->abort(error.what());
    }
  };
  std::vector<std::thread> threads;
  for (auto& [index, own] : own_) {
    ForwardRank& rank =
        in_job_.try_emplace(index, ForwardRank{index, count(), &*own.stage, &own.stream})
            .first->second;
    threads.emplace_back(serve, std::ref(rank));
  }
  for (std::thread& thread : threads)
    thread.join();
  if (failure || consequence)
    std::rethrow_exception(failure ? failure : consequence);
}

}  // namespace pipewright::engine
