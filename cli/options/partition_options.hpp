#pragma once

// The options of `pipewright partition`, and its modes that need no weights.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/generators/schedule_catalog.hpp"

namespace pipewright::cli {

struct PartitionOptions {
  std::string method = "profile";
  int parts = 0;
  bool json = false;

  // The items to partition: one of these.
  std::vector<double> weights;
  std::string model;
  std::string costs;
  std::string layout;   // Megatron's: parts and boundaries in one text
  std::string profile;  // a graph of operators
  int layers = 0;       // number of equal layers, with the weights of input and output below

  // Constraints.
  std::optional<int> first, last;
  std::vector<int> borders;
  std::vector<std::string> together;  // "A-B"
  bool tied_together = false;
  std::optional<std::int64_t> memory_cap;
  std::vector<std::int64_t> memory;  // bytes of each layer
  int chunks = 1;                    // parts on each rank, placed in a loop

  // --layers
  int input_weight = 0;
  int output_weight = 0;

  // --profile
  std::vector<int> machines;
  std::vector<double> bandwidth;
  bool straight = false;
  bool count_transfers = false;

  // --objective makespan, and the memory of stages
  std::string objective = "balance";
  std::string schedule = plan::default_schedule().name;
  int microbatches = 0;
  std::string cluster;
};

/// Each prints its answer and returns the exit code.
int print_layout(const PartitionOptions& options);
int print_layer_split(const PartitionOptions& options);
int print_replicated(const PartitionOptions& options);
int print_fastest(const PartitionOptions& options);

}  // namespace pipewright::cli
