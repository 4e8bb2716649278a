#include "planners/calculon_search.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "planners/calculon_time.hpp"

namespace pipewright::planners {
namespace {

std::vector<int> factors(int number) {
  std::vector<int> all;
  for (int factor = 1; factor <= number; ++factor)
    if (number % factor == 0)
      all.push_back(factor);
  return all;
}

bool divides(int divisor, double number) { return std::fmod(number, divisor) == 0; }

/// Returns false and true, or only false.
std::vector<bool> where(bool possible) {
  return possible ? std::vector<bool>{true, false} : std::vector<bool>{false};
}

class Search {
 public:
  Search(const CalculonModel& model, const CalculonMachine& machine, const CalculonSearch& search)
      : model_(model), machine_(machine), search_(search) {}

  CalculonAnswer answer() && {
    for (const int tensor : factors(search_.devices)) {
      if (!divides(tensor, model_.hidden) || !divides(tensor, model_.heads))
        continue;
      const int devices = search_.devices / tensor;
      for (const int pipeline : factors(std::min(devices, model_.blocks))) {
        if (devices % pipeline != 0 || model_.blocks % pipeline != 0)
          continue;
        const int data = devices / pipeline;
        if (data <= search_.most_batch)
          try_sizes({.tensor = tensor,
                     .pipeline = pipeline,
                     .data = data,
                     .batch = search_.most_batch / data * data});
      }
    }
    return answer_;
  }

 private:
  void try_sizes(CalculonExecution execution) {
    using enum CalculonRecompute;
    using enum CalculonExchange;
    for (const int chunks :
         factors(execution.pipeline > 1 ? model_.blocks / execution.pipeline : 1))
      for (const auto recompute : {Full, Attention, None})
        for (const bool shard : where(execution.data > 1))
          for (const auto exchange : {AllReduce, HalvesAtBorders, Halves}) {
            execution.chunks = chunks;
            execution.recompute = recompute;
            execution.shard_optimizer = shard;
            execution.exchange = exchange;
            try_overlaps(execution);
          }
  }

  void try_overlaps(CalculonExecution execution) {
    using enum CalculonOverlap;
    const bool can_gather_again = execution.exchange == CalculonExchange::Halves &&
                                  execution.recompute != CalculonRecompute::Full;
    const auto overlaps = search_.tensor_overlap && execution.tensor > 1
                              ? std::vector{CalculonOverlap::None, Ring, Pipe}
                              : std::vector{CalculonOverlap::None};
    for (const bool gather_again : where(can_gather_again))
      for (const bool data_overlap : where(search_.data_overlap && execution.data > 1))
        for (const auto tensor_overlap : overlaps) {
          execution.gather_again = gather_again;
          execution.data_overlap = data_overlap;
          execution.tensor_overlap = tensor_overlap;
          try_offloads(execution);
        }
  }

  void try_offloads(CalculonExecution execution) {
    const bool has_far = machine_.far_memory_bytes > 0;
    for (const bool weights : where(has_far))
      for (const bool activations :
           where(has_far && execution.recompute != CalculonRecompute::Full))
        for (const bool optimizer : where(has_far)) {
          execution.offload_weights = weights;
          execution.offload_activations = activations;
          execution.offload_optimizer = optimizer;
          try_microbatches(execution);
        }
  }

  void try_microbatches(CalculonExecution execution) {
    for (const int microbatch : factors(execution.batch / execution.data)) {
      if (!divides(execution.tensor, microbatch * model_.sequence))
        continue;
      const int possible = answer_.possible;
      execution.microbatch = microbatch;
      try_networks(execution);
      if (search_.stops_at_microbatch && answer_.possible == possible)
        break;
    }
  }

  void try_networks(CalculonExecution execution) {
    const auto networks = [&](int size) {
      return size > 1 ? static_cast<int>(machine_.networks.size()) : 1;
    };
    for (int tensor = 0; tensor < networks(execution.tensor); ++tensor)
      for (int pipeline = 0; pipeline < networks(execution.pipeline); ++pipeline)
        for (int data = 0; data < networks(execution.data); ++data) {
          execution.tensor_network = tensor;
          execution.pipeline_network = pipeline;
          execution.data_network = data;
          try_one(execution);
        }
  }

  void try_one(const CalculonExecution& execution) {
    ++answer_.executions;
    const auto seconds = calculon_seconds(model_, machine_, execution);
    if (!seconds)
      return;
    ++answer_.possible;
    const double rate = execution.batch / *seconds;
    if (rate > answer_.samples_per_s) {
      answer_.samples_per_s = rate;
      answer_.execution = execution;
    }
  }

  const CalculonModel& model_;
  const CalculonMachine& machine_;
  const CalculonSearch& search_;
  CalculonAnswer answer_;
};

}  // namespace

CalculonAnswer calculon_best(const CalculonModel& model, const CalculonMachine& machine,
                             const CalculonSearch& search) {
  return Search(model, machine, search).answer();
}

}  // namespace pipewright::planners
