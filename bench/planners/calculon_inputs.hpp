#pragma once

// Calculon's inputs (Isaev, McDonald, Dennison, Vuduc, SC 2023): a transformer, a machine with its
// throughputs and their efficiencies, and the way in which a batch is executed.

#include <filesystem>
#include <vector>

namespace pipewright::planners {

struct CalculonModel {
  double hidden = 0;
  double feed_forward = 0;
  double sequence = 0;
  double heads = 0;
  double head_size = 0;
  int blocks = 0;
};

/// A rate of which a part is reached, which grows with the size of an operation.
struct CalculonRate {
  struct Step {
    double least = 0;  // smallest size of an operation
    double part = 1;
  };
  double peak = 0;
  std::vector<Step> steps{};  // by descending size; the last one is from 0
  double seconds(double size) const;
};

struct CalculonNetwork {
  /// A collective, which moves scale * bytes * (1 + offset / devices).
  struct Collective {
    double scale = 1;
    double offset = 0;
  };
  double bytes_per_s = 0;  // effective
  double latency_s = 0;
  int size = 0;                // devices
  bool filled = false;         // the group that uses it must divide its size
  double processor_usage = 0;  // share of the devices' compute while data moves
  Collective all_reduce{}, all_gather{}, reduce_scatter{};

  double seconds(const Collective& collective, double bytes, int devices) const;
  double send_seconds(double bytes) const { return latency_s + bytes / bytes_per_s; }
};

struct CalculonMachine {
  CalculonRate matrix{}, vector{};  // operations per second
  CalculonRate memory{};            // bytes per second
  CalculonRate far_memory{};
  double memory_bytes = 0;
  double far_memory_bytes = 0;
  bool overlaps_memory = false;  // time is the maximum of compute and memory access, not the sum
  std::vector<CalculonNetwork> networks{};
};

enum class CalculonRecompute { Full, Attention, None };
/// The communication of tensor-parallel ranks. AllReduce: all-reduce. HalvesAtBorders: all-reduce
/// within a chunk, reduce-scatter and all-gather at its boundary. Halves: reduce-scatter and
/// all-gather everywhere, with sequence parallelism.
enum class CalculonExchange { AllReduce, HalvesAtBorders, Halves };
enum class CalculonOverlap { None, Ring, Pipe };

struct CalculonExecution {
  int tensor = 1, pipeline = 1, data = 1;
  int tensor_network = 0, pipeline_network = 0, data_network = 0;
  int batch = 1, microbatch = 1;
  int chunks = 1;  // of the pipeline, per device
  CalculonRecompute recompute = CalculonRecompute::Full;
  CalculonExchange exchange = CalculonExchange::AllReduce;
  CalculonOverlap tensor_overlap = CalculonOverlap::None;
  bool gather_again = false;  // gather again in the backward instead of saving the result
  bool shard_optimizer = false;
  bool data_overlap = false;
  bool offload_weights = false, offload_activations = false, offload_optimizer = false;
};

/// Read Calculon's JSON files, with 16-bit numbers. Throw InputError.
CalculonModel read_calculon_model(const std::filesystem::path& file);
CalculonMachine read_calculon_machine(const std::filesystem::path& file);

}  // namespace pipewright::planners
