#include "pipewright/exec/device/devices.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>

#include "pipewright/exec/cpu/cpu_branch.hpp"
#include "pipewright/exec/device/gpu.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

std::atomic<bool> kernels_as_launched = false;

at::Device gpu(int index) { return {at::kCUDA, static_cast<at::DeviceIndex>(index)}; }

int require_gpus() {
  if (gpus().names.empty())
    throw plan::InputError("no GPU: " + gpus().why_none);
  return static_cast<int>(gpus().names.size());
}

}  // namespace

struct OnDevice::State {
  State(const RankDevice& where, const MemoryAccount& account)
      : stream(compute_stream(where)), on_stream(stream) {
    charge_stream(stream, account.entry());
  }
  Stream stream;
  OnStream on_stream;
};

OnDevice::OnDevice(const RankDevice& where, const MemoryAccount& account)
    : state_(std::make_unique<State>(where, account)) {}

OnDevice::~OnDevice() = default;

void OnDevice::finish() const { state_->stream.finish(); }
bool OnDevice::is_done() const { return state_->stream.is_done(); }

void load_kernels_as_launched() { kernels_as_launched = true; }

const Gpus& gpus() {
  static const Gpus found = find_gpus(kernels_as_launched);
  return found;
}

std::vector<RankDevice> assign_gpus(int ranks, int gpus, bool partitioned) {
  const int used = std::min(gpus, ranks);
  std::vector<RankDevice> devices;
  for (int index = 0; index < used; ++index) {
    // Ranks are distributed evenly: `first` to `last` are this GPU's.
    const int first = ranks * index / used, last = ranks * (index + 1) / used;
    for (int rank = first; rank < last; ++rank)
      devices.push_back(
          {gpu(index), partitioned ? rank - first : 0, partitioned ? last - first : 1});
  }
  return devices;
}

std::string device_in_words(const RankDevice& where) {
  if (where.device.is_cpu())
    return cpu_branch_in_words();
  return gpus().names.at(static_cast<std::size_t>(where.device.index()));
}

plan::Bytes product_workspaces(const RankDevice& where) {
  return where.device.is_cpu() ? plan::Bytes{} : workspaces_of_stream(where);
}

void release_product_workspaces() {
  if (!gpus().names.empty())
    release_workspaces();
}

void compute_reproducibly() {
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
  context.setDeterministicFillUninitializedMemory(false);  // would fill all memory for no benefit
  // The backward of memory-efficient attention adds in the order in which thread blocks finish.
  context.setSDPUseMemEfficient(false);
}

std::vector<RankDevice> on_gpus(int ranks, bool partitioned) {
  return assign_gpus(ranks, require_gpus(), partitioned);
}

RankDevice gpu_of_process(int local_rank) { return {gpu(local_rank % require_gpus())}; }

}  // namespace pipewright::exec
