#include "pipewright/loop_torch/devices.hpp"

#include <ATen/Parallel.h>

#include <algorithm>

#include "pipewright/exec/cpu/cpu_branch.hpp"

namespace pipewright::loop {

void open_devices(const DeviceChoice& choice, plan::CpuBranch branch) {
  exec::use_cpu_branch(branch);
  // Kernels share their work among threads, and round where a share ends: the bits of first weights
  // and of all else on this thread must not depend on the number of cores.
  at::set_num_threads(1);
  if (choice.gpu)
    exec::on_gpus(1);
}

std::vector<exec::RankDevice> devices_for(const DeviceChoice& choice, int ranks,
                                          const exec::Job* job) {
  if (!choice.gpu)
    return {};
  if (job == nullptr)
    return exec::on_gpus(ranks, choice.own_multiprocessors);
  std::vector<exec::RankDevice> devices(static_cast<std::size_t>(ranks));
  devices.at(static_cast<std::size_t>(job->rank())) =
      exec::gpu_of_process(job->environment().local_rank);
  return devices;
}

bool lie_apart(const std::vector<exec::RankDevice>& devices) {
  return std::any_of(devices.begin(), devices.end(), [&](const exec::RankDevice& each) {
    return each.device != devices.front().device;
  });
}

}  // namespace pipewright::loop
