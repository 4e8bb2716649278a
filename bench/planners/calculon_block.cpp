#include "planners/calculon_block.hpp"

#include <algorithm>

namespace pipewright::planners {
namespace {

constexpr std::array<CalculonPhase, calculon_phases> phases{
    CalculonPhase::Forward, CalculonPhase::InputGradient, CalculonPhase::WeightGradient,
    CalculonPhase::Optimizer};

CalculonWork operator+(const CalculonWork& a, const CalculonWork& b) {
  return {a.operations + b.operations, a.memory + b.memory, a.both + b.both};
}

CalculonPlaces operator+(const CalculonPlaces& a, const CalculonPlaces& b) {
  return {a.within + b.within, a.border + b.border};
}

/// The times of a layer.
class LayerTimes {
 public:
  LayerTimes(const CalculonLayer& layer, const CalculonMachine& machine,
             const CalculonExecution& execution)
      : layer_(layer),
        machine_(machine),
        execution_(execution),
        network_(machine.networks[static_cast<std::size_t>(execution.tensor_network)]) {}

  struct Phase {
    CalculonWork work;
    double waits = 0;  // for tiles of a communication
  };

  Phase phase(CalculonPhase phase) const {
    const auto at = static_cast<std::size_t>(phase);
    const double size = layer_.operations[at];
    const bool is_matrix = layer_.is_matrix && phase != CalculonPhase::Optimizer;
    const double operations = (is_matrix ? machine_.matrix : machine_.vector).seconds(size);
    const double memory = machine_.memory.seconds(layer_.moved_bytes[at]);
    Phase times{.work = {operations, memory, together(operations, memory)}};
    if (layer_.comm == CalculonComm::Apart)
      times.work.both = 0;  // part of the communication
    else if (layer_.comm == CalculonComm::Tiled)
      overlap(times, exchange(phase, false));
    return times;
  }

  /// Returns the communication time in a block within a chunk, or at the chunk's boundary.
  double exchange(CalculonPhase phase, bool border) const {
    if (layer_.comm == CalculonComm::None || phase == CalculonPhase::Optimizer)
      return 0;
    if (phase == CalculonPhase::WeightGradient)  // stands for the repeated communication
      return layer_.exchanged_again ? transfer(CalculonPhase::Forward, border) : 0;
    return transfer(phase, border) + at_the_end(phase);
  }

  CalculonPlaces exchanges(CalculonPhase phase) const {
    return {.within = exchange(phase, false), .border = exchange(phase, true)};
  }

 private:
  bool in_halves(bool border) const {
    return execution_.exchange == CalculonExchange::Halves ||
           (execution_.exchange == CalculonExchange::HalvesAtBorders && border);
  }

  /// Returns true if the phase reduces instead of gathering.
  bool sums(CalculonPhase phase) const {
    return layer_.reduces == (phase == CalculonPhase::Forward);
  }

  double transfer(CalculonPhase phase, bool border) const {
    const bool halves = in_halves(border);
    if (!sums(phase) && !halves)
      return 0;  // all ranks have the data
    const auto& collective = !halves       ? network_.all_reduce
                             : sums(phase) ? network_.reduce_scatter
                                           : network_.all_gather;
    return network_.seconds(collective, bytes(), execution_.tensor);
  }

  double bytes() const { return layer_.reduces ? layer_.reduced_bytes : layer_.gathered_bytes; }

  /// Returns the additions of a sum, and the memory traffic of a separate communication.
  double at_the_end(CalculonPhase phase) const {
    if (layer_.comm == CalculonComm::Apart) {
      const auto at = static_cast<std::size_t>(phase);
      return together(machine_.vector.seconds(layer_.operations[at]),
                      machine_.memory.seconds(layer_.moved_bytes[at]));
    }
    if (!sums(phase))
      return 0;
    const double ranks = execution_.tensor;
    return machine_.vector.seconds(bytes() / calculon_element_bytes * (ranks - 1) / ranks);
  }

  double together(double operations, double memory) const {
    return machine_.overlaps_memory ? std::max(operations, memory) : operations + memory;
  }

  /// Overlaps communication with compute: all tiles but one are sent while others are computed,
  /// which slows compute down. In a ring each rank begins with its own tile; in a pipe it waits for
  /// the first one.
  void overlap(Phase& times, double exchange) const {
    if (exchange == 0)
      return;
    const double tiles = execution_.tensor;
    const double slowed = times.work.operations / (1 - network_.processor_usage);
    const double tile = times.work.both / tiles;
    const double slowed_tile = together(slowed, times.work.memory) / tiles;
    const double exchange_tile = exchange / tiles;
    if (const double late = exchange_tile - slowed / tiles; late > 0) {
      times.work.both = tile + (tiles - 1) * slowed_tile;
      times.waits = (tiles - 1) * late;
    } else {
      times.work.both = tiles * tile + (tiles - 1) * exchange_tile * network_.processor_usage;
    }
    if (execution_.tensor_overlap == CalculonOverlap::Pipe) {
      times.waits += exchange_tile;
      times.work.both += exchange_tile;
    }
  }

  const CalculonLayer& layer_;
  const CalculonMachine& machine_;
  const CalculonExecution& execution_;
  const CalculonNetwork& network_;
};

void add_times(CalculonBlock& block, const CalculonLayer& layer, const LayerTimes& times) {
  std::array<LayerTimes::Phase, calculon_phases> layer_phases;
  for (const CalculonPhase phase : phases) {
    const auto at = static_cast<std::size_t>(phase);
    layer_phases[at] = times.phase(phase);
    block.work[at] = block.work[at] + layer_phases[at].work;
  }
  const auto waits = [&](CalculonPhase phase, CalculonPhase apart) -> CalculonPlaces {
    const double tiled = layer_phases[static_cast<std::size_t>(phase)].waits;
    return layer.comm == CalculonComm::Tiled ? CalculonPlaces{tiled, tiled}
                                             : times.exchanges(apart);
  };
  block.forward_waits = block.forward_waits + waits(CalculonPhase::Forward, CalculonPhase::Forward);
  block.backward_waits =
      block.backward_waits + waits(CalculonPhase::InputGradient, CalculonPhase::InputGradient);
  block.backward_exchange = block.backward_exchange + times.exchanges(CalculonPhase::InputGradient);
  if (layer.computed_again) {
    const CalculonWork& so_far = block.of(CalculonPhase::Forward);
    block.again.operations += so_far.operations;
    block.again.memory += so_far.memory;
    block.again.both += layer_phases[0].work.both;
  }
  if (layer.exchanged_again) {
    block.again_waits =
        block.again_waits + waits(CalculonPhase::Forward, CalculonPhase::WeightGradient);
    block.again_exchange = block.again_exchange + times.exchanges(CalculonPhase::WeightGradient);
  }
}

void add_bytes(CalculonBlock& block, const CalculonLayer& layer, double shards) {
  block.weight_bytes += layer.weights * calculon_element_bytes;
  if (!layer.shares_activation)
    block.working_bytes += layer.activation_bytes;
  if (layer.keeps_activation)
    block.stored_bytes += layer.activation_bytes;
  if (!layer.keeps_output)
    block.stored_bytes -= layer.output_bytes;
  block.weight_gradient_bytes += layer.weights * calculon_element_bytes / shards;
  block.whole_weight_gradient_bytes += layer.weights * 4;
  block.activation_gradient_bytes += layer.gradient_bytes;
  block.optimizer_bytes += layer.moved_bytes[static_cast<std::size_t>(CalculonPhase::Optimizer)];
}

}  // namespace

CalculonBlock calculon_block(const CalculonModel& model, const CalculonMachine& machine,
                             const CalculonExecution& execution) {
  CalculonBlock block;
  const double shards = execution.shard_optimizer ? execution.data : 1;
  for (const CalculonLayer& layer : calculon_layers(model, execution)) {
    add_times(block, layer, LayerTimes(layer, machine, execution));
    add_bytes(block, layer, shards);
  }
  if (execution.recompute == CalculonRecompute::Full) {
    block.stored_bytes = 0;
    block.checkpoint_bytes =
        execution.microbatch * model.sequence * model.hidden * calculon_element_bytes;
  }
  return block;
}

}  // namespace pipewright::planners
