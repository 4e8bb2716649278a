#include "planners/calculon_time.hpp"

#include <algorithm>
#include <cmath>

#include "planners/calculon_block.hpp"

namespace pipewright::planners {
namespace {

bool networks_suffice(const CalculonMachine& machine, const CalculonExecution& execution) {
  for (std::size_t network = 0; network < machine.networks.size(); ++network) {
    int devices = 1;
    const auto use = [&](int size, int at) {
      if (static_cast<std::size_t>(at) == network)
        devices *= size;
    };
    use(execution.tensor, execution.tensor_network);
    use(execution.pipeline, execution.pipeline_network);
    use(execution.data, execution.data_network);
    const CalculonNetwork& link = machine.networks[network];
    if (devices > link.size || (devices > 1 && link.filled && link.size % devices != 0))
      return false;
  }
  return true;
}

/// The blocks of one device over a batch. A chunk is a number of blocks for one microbatch; its
/// last block lies at the boundary to the next device.
class Batch {
 public:
  Batch(const CalculonModel& model, const CalculonMachine& machine,
        const CalculonExecution& execution)
      : machine_(machine),
        execution_(execution),
        block_(calculon_block(model, machine, execution)),
        blocks_(model.blocks / execution.pipeline),
        chunk_blocks_(blocks_ / execution.chunks),
        microbatches_(execution.batch / execution.data / execution.microbatch) {
    const bool halves = execution.exchange != CalculonExchange::AllReduce;
    const double tokens = execution.microbatch * model.sequence;
    const double sent = (halves ? std::floor(tokens / execution.tensor) : tokens) * model.hidden;
    send_ = network(execution.pipeline_network)
                .send_seconds(execution.pipeline > 1 ? sent * calculon_element_bytes : 0);
    forward_ = with_offload({.within = forward().both + block_.forward_waits.within,
                             .border = forward().both + block_.forward_waits.border + send_},
                            offload(false) + forward().memory, forward_offload_);
    backward_ = with_offload({.within = block_.again.both + block_.again_waits.within +
                                        backward_both() + block_.backward_waits.within,
                              .border = block_.again.both + block_.again_waits.border +
                                        backward_both() + block_.backward_waits.border + send_},
                             offload(true) + backward_memory(), backward_offload_);
  }

  bool fits() const {
    double near = block_.activation_gradient_bytes, far = 0;
    const double blocks = blocks_;
    if (execution_.offload_weights) {
      near += 2 * block_.weight_bytes;
      far += blocks * block_.weight_bytes;
    } else {
      near += blocks * block_.weight_bytes;
    }
    const bool full = execution_.recompute == CalculonRecompute::Full;
    const double activations =
        block_.working_bytes +
        (full ? 0 : block_.stored_bytes * (blocks * microbatches_held() - 1));
    const double checkpoints = blocks * block_.checkpoint_bytes * microbatches_held();
    if (execution_.offload_activations) {
      near += block_.working_bytes + block_.stored_bytes + 2 * block_.checkpoint_bytes;
      far += full ? checkpoints : activations;
    } else {
      near += activations + checkpoints;
    }
    if (execution_.offload_optimizer) {
      near += block_.whole_weight_gradient_bytes + block_.weight_gradient_bytes +
              2 * block_.optimizer_bytes;
      far += blocks * (block_.weight_gradient_bytes + block_.optimizer_bytes);
    } else {
      near += block_.whole_weight_gradient_bytes + block_.weight_gradient_bytes * (blocks - 1) +
              block_.optimizer_bytes * blocks;
    }
    return near <= machine_.memory_bytes && far <= machine_.far_memory_bytes;
  }

  double seconds() const {
    const double passes = blocks_ * microbatches_;
    const double sends =
        execution_.pipeline > 1 ? 2 * send_ * microbatches_ * execution_.chunks : 0;
    return passes * (forward().both + backward_both() + block_.again.both) +
           blocks_ * of(CalculonPhase::Optimizer).both + all(forward_offload_) +
           all(backward_offload_) + all(block_.forward_waits) + all(block_.backward_waits) +
           all(block_.again_waits) + sends + bubble() + averaging();
  }

 private:
  const CalculonWork& of(CalculonPhase phase) const { return block_.of(phase); }
  const CalculonWork& forward() const { return of(CalculonPhase::Forward); }
  double backward_both() const {
    return of(CalculonPhase::InputGradient).both + of(CalculonPhase::WeightGradient).both;
  }
  double backward_memory() const {
    return of(CalculonPhase::InputGradient).memory + of(CalculonPhase::WeightGradient).memory;
  }
  double backward_operations() const {
    return of(CalculonPhase::InputGradient).operations +
           of(CalculonPhase::WeightGradient).operations;
  }
  const CalculonNetwork& network(int at) const {
    return machine_.networks[static_cast<std::size_t>(at)];
  }

  /// Returns the time of a chunk for one microbatch.
  double chunk(const CalculonPlaces& block) const {
    return (chunk_blocks_ - 1) * block.within + block.border;
  }
  double all(const CalculonPlaces& block) const {
    return chunk(block) * microbatches_ * execution_.chunks;
  }

  /// Returns the time to move data to or from the far memory while a block computes.
  double offload(bool backward) const {
    const double weights = execution_.offload_weights ? block_.weight_bytes : 0;
    const double kept = execution_.recompute == CalculonRecompute::Full ? block_.checkpoint_bytes
                                                                        : block_.stored_bytes;
    const double activations = execution_.offload_activations ? kept : 0;
    const double optimizer = execution_.offload_optimizer ? block_.optimizer_bytes : 0;
    return machine_.far_memory.seconds(backward ? weights + activations + optimizer
                                                : std::max(weights, activations));
  }

  /// Adds offloading, which shares the memory with the block's own accesses. The part that exceeds
  /// the block's time is `over`.
  static CalculonPlaces with_offload(const CalculonPlaces& block, double busy,
                                     CalculonPlaces& over) {
    over = {.within = std::max(0.0, busy - block.within),
            .border = std::max(0.0, busy - block.border)};
    return {.within = block.within + over.within, .border = block.border + over.border};
  }

  double bubble() const {
    const double chunk_seconds = chunk(forward_) + chunk(backward_);
    const int rest = microbatches_ % execution_.pipeline;
    const int missing = rest == 0 ? 0 : (execution_.chunks - 1) * (execution_.pipeline - rest);
    return (execution_.pipeline - 1 + missing) * chunk_seconds;
  }

  /// Returns the number of microbatches for which a device of the first stage holds data.
  double microbatches_held() const {
    const double devices = execution_.pipeline;
    const double held = std::min(microbatches_, execution_.pipeline);
    return execution_.chunks == 1 ? held
                                  : held * (1 + (devices - 1) / (execution_.chunks * devices));
  }

  /// Returns the time to average the gradients of one block over the replicas.
  double average_block() const {
    const CalculonNetwork& link = network(execution_.data_network);
    const auto take = [&](const CalculonNetwork::Collective& collective) {
      return link.seconds(collective, block_.weight_bytes, execution_.data);
    };
    return execution_.shard_optimizer ? take(link.reduce_scatter) + take(link.all_gather)
                                      : take(link.all_reduce);
  }

  double averaging() const {
    if (execution_.data == 1)
      return 0;
    const double block = average_block();
    if (!execution_.data_overlap)
      return blocks_ * block;
    return block + late_for_chunks(block) + late_for_last_chunk(block);
  }

  /// Returns the part of the backward in which gradients can be averaged: when neither the memory
  /// nor the same network is in use.
  CalculonPlaces window() const {
    const double memory = backward_memory() + block_.again.memory;
    CalculonPlaces window{.within = backward_.within - memory, .border = backward_.border - memory};
    if (!execution_.shard_optimizer) {
      window.within += optimizer_window();
      window.border += optimizer_window();
    }
    if (execution_.data_network == execution_.tensor_network) {
      window.within -= block_.again_exchange.within + block_.backward_exchange.within;
      window.border -= block_.again_exchange.border + block_.backward_exchange.border;
    }
    return window;
  }

  double optimizer_window() const {
    const CalculonWork& work = of(CalculonPhase::Optimizer);
    return work.both - work.memory;
  }

  double compute_of_block() const {
    return backward_operations() + block_.again.operations +
           (execution_.shard_optimizer ? 0 : of(CalculonPhase::Optimizer).operations);
  }

  /// Returns the averaging time that is not hidden for all chunks but the last. Their gradients
  /// have a chunk's time of as many microbatches as the pipeline has stages.
  double late_for_chunks(double block) const {
    const double usage = network(execution_.data_network).processor_usage;
    const double needed = chunk_blocks_ * block;
    double sends = 0;  // during the averaging
    if (execution_.data_network == execution_.pipeline_network) {
      const int rest = microbatches_ % execution_.pipeline;
      sends = std::min(std::floor(needed / chunk(backward_)),
                       static_cast<double>(rest == 0 ? execution_.pipeline : rest));
    }
    const double late = needed - (execution_.pipeline * chunk(window()) - sends * send_) +
                        execution_.pipeline * chunk_blocks_ * compute_of_block() * usage;
    return (execution_.chunks - 1) * (late > 0 ? late : needed * usage);
  }

  /// Returns the averaging time that is not hidden for all blocks of the last chunk but the last
  /// one.
  double late_for_last_chunk(double block) const {
    const double usage = network(execution_.data_network).processor_usage;
    double time = 0;
    if (chunk_blocks_ > 1) {
      time = chunk(window()) - send_ - (backward_.within + backward_.border) / 2;
      if (!execution_.shard_optimizer)
        time += optimizer_window();
    }
    const double needed = (chunk_blocks_ - 1) * block;
    const double late = needed + compute_of_block() * usage - time;
    return late > 0 ? late : needed * usage;
  }

  const CalculonMachine& machine_;
  const CalculonExecution& execution_;
  CalculonBlock block_;
  int blocks_;
  int chunk_blocks_;
  int microbatches_;
  double send_ = 0;
  CalculonPlaces forward_, backward_;
  CalculonPlaces forward_offload_, backward_offload_;
};

}  // namespace

std::optional<double> calculon_seconds(const CalculonModel& model, const CalculonMachine& machine,
                                       const CalculonExecution& execution) {
  const bool offloads =
      execution.offload_weights || execution.offload_activations || execution.offload_optimizer;
  if (!networks_suffice(machine, execution) || (offloads && model.blocks / execution.pipeline <= 2))
    return std::nullopt;
  const Batch batch(model, machine, execution);
  if (!batch.fits())
    return std::nullopt;
  return batch.seconds();
}

}  // namespace pipewright::planners
