#include "pipewright/exec/device/gpu.hpp"

#include "pipewright/exec/gpu/nccl_transport.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

constexpr const char* reason = "this Pipewright was built without the CUDA headers of LibTorch";

}  // namespace

Gpus find_gpus(bool /*as_launched*/) { return {{}, reason}; }

plan::Bytes workspaces_of_stream(const RankDevice&) { return {}; }

void release_workspaces() {}

Stream compute_stream(const RankDevice& where) {
  if (where.device.is_cpu())
    return {};
  throw plan::InputError(reason);
}

void charge_stream(const Stream&, AccountEntry*) {}

std::unique_ptr<Capturer> make_graph_capturer(AccountEntry*) { throw plan::InputError(reason); }

std::unique_ptr<Transport> make_nccl_transport(Job&, at::Device, TransferOptions) {
  throw plan::InputError(reason);
}

}  // namespace pipewright::exec
