#include "pipewright/loop_torch/devices.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>

#include "pipewright/engine/member.hpp"
#include "pipewright/exec/cpu/cpu_branch.hpp"
#include "pipewright/exec/job/environment.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::loop {

void open_devices(const DeviceChoice& choice, plan::CpuBranch branch) {
  exec::use_cpu_branch(branch);
  // Kernels split their work among threads and round where a part ends. With one thread, the bits
  // of the initial weights do not depend on the number of cores.
  at::set_num_threads(1);
  if (!choice.gpu)
    return;
  if (!exec::job_from_environment())
    exec::load_kernels_as_launched();  // the ranks are threads of this process
  exec::on_gpus(1);
}

std::vector<exec::RankDevice> devices_for(const DeviceChoice& choice, int ranks,
                                          const exec::Job* job) {
  if (!choice.gpu)
    return {};
  return engine::gpus_of(ranks, job, choice.own_multiprocessors);
}

bool on_different_devices(const std::vector<exec::RankDevice>& devices) {
  return std::any_of(devices.begin(), devices.end(), [&](const exec::RankDevice& each) {
    return each.device != devices.front().device;
  });
}

std::optional<SharedGpu> shared_gpu(const std::vector<exec::RankDevice>& devices) {
  SharedGpu shared{.ranks_per_gpu = 1, .own_multiprocessors = true};
  for (const exec::RankDevice& each : devices) {
    const auto on_it = std::ranges::count(devices, each.device, &exec::RankDevice::device);
    shared.ranks_per_gpu = std::max(shared.ranks_per_gpu, static_cast<int>(on_it));
    shared.own_multiprocessors = shared.own_multiprocessors && each.parts == on_it;
  }
  return shared.ranks_per_gpu > 1 ? std::optional(shared) : std::nullopt;
}

std::string in_words(const SharedGpu& shared) {
  if (shared.own_multiprocessors)
    return fmt::format("{} ranks share a GPU, each with its own multiprocessors",
                       shared.ranks_per_gpu);
  return fmt::format(
      "{} ranks share a GPU and its multiprocessors, but each is predicted as if it had a GPU to "
      "itself: the iteration will take longer than that; --own-multiprocessors divides the GPU",
      shared.ranks_per_gpu);
}

plan::Json to_json(const SharedGpu& shared) {
  return {{"ranks_per_gpu", shared.ranks_per_gpu},
          {"own_multiprocessors", shared.own_multiprocessors}};
}

}  // namespace pipewright::loop
