#include "device_options.hpp"

#include <algorithm>

#include "pipewright/plan/error.hpp"

namespace pipewright::cli {

void add_device_options(CLI::App& command, DeviceOptions& options) {
  command
      .add_option("--device", options.device,
                  "Where ranks compute: cpu or cuda, spread over all GPUs")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command.add_flag("--own-multiprocessors", options.own_multiprocessors,
                   "Ranks that share a GPU: each on its part of the multiprocessors alone");
}

void open_devices(const DeviceOptions& options) {
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
