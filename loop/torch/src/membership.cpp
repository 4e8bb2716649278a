#include "pipewright/loop_torch/membership.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <numeric>

#include "pipewright/exec/aborted.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/gpu/nccl_transport.hpp"
#include "pipewright/exec/job/environment.hpp"
#include "pipewright/exec/transport/gloo_transport.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::loop {
namespace {

at::Tensor bytes_of(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(bytes.data_ptr()));
  return bytes;
}

std::string text_of(const at::Tensor& bytes) {
  return {static_cast<const char*>(bytes.const_data_ptr()),
          static_cast<std::size_t>(bytes.numel())};
}

}  // namespace

exec::JobGrid grid_of(const plan::Pipeline& pipeline) {
  return {pipeline.ranks, pipeline.replicas, pipeline.tensor, pipeline.axes, pipeline.expert};
}

Membership::Membership(const plan::Scenario& scenario, const MembershipOptions& wanted) {
  const auto environment = exec::job_from_environment();
  if (!environment)
    return;
  const int ranks = plan::ranks_of_job(scenario.pipeline);
  if (environment->size != ranks)
    throw plan::InputError(fmt::format(
        "{} has started {} processes, but the scenario has {} ranks (pipeline.ranks {} x "
        "pipeline.replicas {}{})",
        environment->launcher, environment->size, ranks, scenario.pipeline.ranks,
        scenario.pipeline.replicas,
        scenario.pipeline.tensor > 1
            ? fmt::format(" x pipeline.tensor {}", scenario.pipeline.tensor)
            : ""));
  exec::JobOptions options;
  options.timeout = wanted.timeout;
  options.stall = wanted.stall;
  if (wanted.give_up)
    options.when_stuck = [this, give_up = wanted.give_up](const std::string& why) {
      give_up(job_->reports_failure() ? why : "");
    };
  job_.emplace(*environment, options);
  const exec::TransferOptions transfers{
      .communicators = scenario.pipeline.communicators,
      .wait_until_taken = scenario.pipeline.blocking &&
                          scenario.pipeline.transfers == plan::TransferMode::Rendezvous};
  if (wanted.on_gpu)
    transport_ = exec::make_nccl_transport(
        *job_, exec::gpu_of_process(environment->local_rank).device, transfers);
  else
    transport_ = exec::make_gloo_transport(*job_, transfers);
}

std::optional<int> Membership::rank() const {
  return job_ ? std::optional(job_->rank()) : std::nullopt;
}

std::vector<exec::Tensors> Membership::from_all(const exec::Tensors& tensors) const {
  if (!job_)
    return {tensors};
  std::vector<int> everybody(static_cast<std::size_t>(job_->size()));
  std::iota(everybody.begin(), everybody.end(), 0);
  return transport_->all_gather(everybody, job_->rank(), tensors);
}

std::vector<std::string> Membership::from_all(const std::string& text) const {
  std::vector<std::string> texts;
  for (const exec::Tensors& theirs : from_all(exec::Tensors{bytes_of(text)}))
    texts.push_back(text_of(theirs.at(0)));
  return texts;
}

std::string Membership::from_first(const std::string& text) const {
  return from_all(is_first() ? text : std::string()).front();
}

void take_part(Membership& members, const std::function<void()>& part) {
  try {
    part();
  } catch (const exec::Aborted&) {
    throw;
  } catch (const std::exception& failure) {
    if (members.job() != nullptr)
      members.job()->abort(failure.what());
    throw;
  }
}

}  // namespace pipewright::loop
