#include "layer_sums.hpp"

#include <ATen/ATen.h>

#include "pipewright/exec/stage/split_backward.hpp"

namespace pipewright::profiler {
namespace {

/// Returns the number of exchanges in an all-reduce: two ranks need one; more ranks first exchange
/// pieces and then the sums of these.
int exchanges_of_sum(int shards) { return shards > 2 ? 2 : 1; }

/// Returns the number of all-reduces, rounded up: a gather alone counts as one.
int sums_of(int exchanges, int shards) {
  const int each = exchanges_of_sum(shards);
  return (exchanges + each - 1) / each;
}

}  // namespace

plan::PartitionCollectives sums_of_shards(const Trial& trial) {
  const PlayedShards* const shards = trial.bench.shards();
  if (shards == nullptr)
    return {};
  const int count = trial.bench.shard_count();
  const CommunicationTotals before = shards->passed_on();
  const exec::Tensors outputs = trial.forward(trial.leaves());
  const CommunicationTotals between = shards->passed_on();
  if (have_gradient(outputs))
    exec::full_backward(outputs, ones_for(outputs));
  const CommunicationTotals after = shards->passed_on();
  plan::PartitionCollectives sums{.times = sums_of(between.times - before.times, count),
                                  .bytes = {},
                                  .backward_times = sums_of(after.times - between.times, count)};
  const int times = sums.times + sums.backward_times;
  if (times == 0)
    return {};
  // A rank sends each other rank a piece of 1/count twice; of two ranks each sends everything at
  // once, which is as much.
  const double sent = static_cast<double>((after.bytes - before.bytes).value);
  sums.bytes = plan::whole_bytes(sent / times * count / (2.0 * (count - 1)));
  return sums;
}

}  // namespace pipewright::profiler
