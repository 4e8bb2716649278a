#pragma once

// What Calculon is told (Isaev, McDonald, Dennison, Vuduc, SC 2023): a transformer, a machine by
// its throughputs and how well they are used, and how a batch is executed.

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

/// A rate that is reached in part, the more the larger an operation is.
struct CalculonRate {
  struct Step {
    double least = 0;  // size of an operation
    double part = 1;
  };
  double peak = 0;
  std::vector<Step> steps{};  // by descending size, the last from 0
  double seconds(double size) const;
};

struct CalculonNetwork {
  /// A collective moves scale * bytes * (1 + offset / devices).
  struct Collective {
    double scale = 1;
    double offset = 0;
  };
  double bytes_per_s = 0;  // reached
  double latency_s = 0;
  int size = 0;                // devices
  bool filled = false;         // what uses it must divide it
  double processor_usage = 0;  // of the devices' compute, while it moves data
  Collective all_reduce{}, all_gather{}, reduce_scatter{};

  double seconds(const Collective& collective, double bytes, int devices) const;
  double send_seconds(double bytes) const { return latency_s + bytes / bytes_per_s; }
};

struct CalculonMachine {
  CalculonRate matrix{}, vector{};  // operations
  CalculonRate memory{};            // bytes
  CalculonRate far_memory{};
  double memory_bytes = 0;
  double far_memory_bytes = 0;
  bool overlaps_memory = false;  // compute and memory access take the longer of both, not the sum
  std::vector<CalculonNetwork> networks{};
};

enum class CalculonRecompute { Full, Attention, None };
/// How tensor parallel ranks exchange: sums; sums within a chunk and halves of sums at its border;
/// halves of sums, with a sequence that is split between them.
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
  bool gather_again = false;  // in the backward pass, rather than keep what was gathered
  bool shard_optimizer = false;
  bool data_overlap = false;
  bool offload_weights = false, offload_activations = false, offload_optimizer = false;
};

/// Read the JSON that Calculon reads, numbers of 16 bits. Throw InputError.
CalculonModel read_calculon_model(const std::filesystem::path& file);
CalculonMachine read_calculon_machine(const std::filesystem::path& file);

}  // namespace pipewright::planners
