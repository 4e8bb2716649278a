#include "pipewright/engine/member.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>

#include "pipewright/exec/aborted.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/gpu/nccl_transport.hpp"
#include "pipewright/exec/job/environment.hpp"
#include "pipewright/exec/transport/gloo_transport.hpp"
#include "pipewright/exec/transport/rank_group.hpp"
#include "pipewright/plan/error.hpp"
#include "tensor_axis.hpp"

namespace pipewright::engine {
std::vector<exec::RankDevice> gpus_of(int ranks, const exec::Job* job, bool own_multiprocessors) {
  if (job == nullptr)
    return exec::on_gpus(ranks, own_multiprocessors);
  std::vector<exec::RankDevice> devices(static_cast<std::size_t>(ranks));
  devices.at(static_cast<std::size_t>(job->rank())) =
      exec::gpu_of_process(job->environment().local_rank);
  return devices;
}

Member::Member() : topology_(plan::pipe_data_topology(1, 1)) {}

Member::Member(plan::Topology topology, MemberOptions options)
    : topology_(with_tensor_axis(topology)) {
  const auto environment = exec::job_from_environment();
  const int ranks = topology_.rank_count();
  if (environment && environment->size != ranks)
    throw plan::InputError(fmt::format("{} has started {} processes, but the topology has {} ranks",
                                       environment->launcher, environment->size, ranks));
  at::set_num_threads(1);
  if (options.on_gpu) {
    if (!environment)
      exec::load_kernels_as_launched();
    exec::on_gpus(1);
  }
  if (environment)
    join(*environment, options);
  if (options.on_gpu)
    devices_ = gpus_of(ranks, job_.get(), options.own_multiprocessors);
}

Member::~Member() = default;

void Member::join(const exec::JobEnvironment& environment, const MemberOptions& options) {
  job_ = std::make_unique<exec::Job>(environment, options.job);
  if (options.on_gpu)
    transport_ = exec::make_nccl_transport(
        *job_, exec::gpu_of_process(environment.local_rank).device, options.transfers);
  else
    transport_ = exec::make_gloo_transport(*job_, options.transfers);
}

std::optional<int> Member::rank() const {
  return job_ ? std::optional(job_->rank()) : std::nullopt;
}

exec::ExecutorOptions Member::execution() const {
  return {
      .axes = topology_.axes(), .devices = devices_, .transport = transport_, .only_rank = rank()};
}

std::vector<int> Member::group_along(const std::string& axis) const {
  if (!job_)
    throw plan::InputError(
        fmt::format("there is no single group along axis \"{}\", because all ranks are threads of "
                    "this process: get the groups from the topology",
                    axis));
  for (const auto& group : topology_.groups_along(axis_name(axis)))
    if (std::find(group.begin(), group.end(), job_->rank()) != group.end())
      return group;
  throw std::logic_error("a rank is in no group of its topology");
}

std::vector<exec::Tensors> Member::from_all(const exec::Tensors& tensors) const {
  return job_ ? everybody(job_->size(), job_->rank(), *transport_).all_gather(tensors)
              : std::vector<exec::Tensors>{tensors};
}

std::vector<std::string> Member::from_all(const std::string& text) const {
  return job_ ? everybody(job_->size(), job_->rank(), *transport_).texts(text)
              : std::vector<std::string>{text};
}

std::string Member::from_first(const std::string& text) const {
  return from_all(is_first() ? text : std::string()).front();
}

void take_part(Member& member, const std::function<void()>& part) {
  try {
    part();
  } catch (const exec::Aborted&) {
    throw;
  } catch (const std::exception& failure) {
    if (member.job() != nullptr)
      member.job()->abort(failure.what());
    throw;
  }
}

}  // namespace pipewright::engine
