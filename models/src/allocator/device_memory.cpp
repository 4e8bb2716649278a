#include "pipewright/models/allocator/device_memory.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace pipewright::models {
namespace {

/// Returns the number of communicators of a GPU: one per parallel axis, and one more for the
/// replicas of its experts.
int communicators_of(const plan::Cut& cut) {
  int count = 0;
  for (const int devices :
       {cut.tensor, cut.context, cut.data * cut.context, cut.pipeline, cut.expert})
    count += devices > 1 ? 1 : 0;
  return count + (cut.expert > 1 && cut.expert_copies() > 1 ? 1 : 0);
}

}  // namespace

DeviceMemory gpu_memory(plan::Bytes allocated, const plan::Cut& cut, std::string left_out) {
  return {.allocated = allocated,
          .reserved = allocated,
          .context = cuda_context,
          .communicators = of_communicator * communicators_of(cut),
          .left_out = std::move(left_out)};
}

namespace {

DeviceMemory memory_of(const AllocatorCounters& counters, const plan::Cut& cut) {
  DeviceMemory memory = gpu_memory({counters.peak_allocated}, cut, {});
  memory.standing = {counters.allocated};  // no other tensors remain after a step
  memory.reserved = {counters.peak_reserved};
  return memory;
}

}  // namespace

DeviceMemory replayed_memory(const plan::TransformerTraining& training, const plan::Cut& cut,
                             int rank) {
  return memory_of(fullest_replay(training, cut, rank), cut);
}

std::vector<DeviceMemory> replayed_memory(const plan::TransformerTraining& training,
                                          const plan::Cut& cut) {
  const std::vector<plan::Bytes> allocated = allocated_by_rank(training, cut);
  const auto fullest = std::ranges::max_element(allocated) - allocated.begin();
  std::vector<DeviceMemory> ranks;
  for (int rank = 0; rank < cut.pipeline; ++rank)
    ranks.push_back(rank == fullest
                        ? replayed_memory(training, cut, rank)
                        : memory_of(replay_training(training, cut, {.rank = rank}), cut));
  return ranks;
}

std::vector<plan::Bytes> totals_of(const std::vector<DeviceMemory>& ranks) {
  std::vector<plan::Bytes> totals;
  for (const DeviceMemory& rank : ranks)
    totals.push_back(rank.total());
  return totals;
}

plan::Json to_json(const DeviceMemory& memory) {
  plan::Json json{{"bytes", memory.total().value},
                  {"allocated_bytes", memory.allocated.value},
                  {"fragmentation_bytes", memory.fragmentation().value},
                  {"context_bytes", memory.context.value},
                  {"communicator_bytes", memory.communicators.value}};
  if (memory.standing > plan::Bytes{})
    json["standing_bytes"] = memory.standing.value;
  if (!memory.left_out.empty())
    json["left_out"] = memory.left_out;
  return json;
}

}  // namespace pipewright::models
