#include "devices.hpp"

#include <ATen/Parallel.h>

#include <algorithm>

#include "pipewright/exec/cpu/cpu_branch.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::cli {

void open_devices(const DeviceOptions& options, plan::CpuBranch branch) {
  exec::use_cpu_branch(branch);
  // Kernels share their work among threads, and round where a share ends: the bits of first weights
  // and of all else on this thread must not depend on the number of cores.
  at::set_num_threads(1);
  if (options.on_gpu())
    exec::on_gpus(1);
  else if (options.own_multiprocessors)
    throw plan::InputError("--own-multiprocessors needs --device cuda");
}

std::vector<exec::RankDevice> devices_for(const DeviceOptions& options, int ranks,
                                          const exec::Job* job) {
  if (!options.on_gpu())
    return {};
  if (job == nullptr)
    return exec::on_gpus(ranks, options.own_multiprocessors);
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

}  // namespace pipewright::cli
