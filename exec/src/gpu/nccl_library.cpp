#include "nccl_library.hpp"

#include <fmt/format.h>

#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/device/loaded_library.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

NcclLibrary load() {
  gpus();  // loads LibTorch's CUDA libraries, which bring NCCL with them
  const LoadedLibrary library("NCCL", "libnccl.so.2");
  NcclLibrary nccl{};
  library.find("ncclGetUniqueId", nccl.get_unique_id);
  library.find("ncclCommInitRankConfig", nccl.init_rank);
  library.find("ncclCommAbort", nccl.abort);
  library.find("ncclCommFinalize", nccl.finalize);
  library.find("ncclCommDestroy", nccl.destroy);
  library.find("ncclCommGetAsyncError", nccl.async_error);
  library.find("ncclGroupStart", nccl.group_start);
  library.find("ncclGroupEnd", nccl.group_end);
  library.find("ncclSend", nccl.send);
  library.find("ncclRecv", nccl.receive);
  library.find("ncclGetErrorString", nccl.error_string);
  library.find("ncclGetLastError", nccl.last_error);
  return nccl;
}

}  // namespace

const NcclLibrary& NcclLibrary::get() {
  static const NcclLibrary library = load();
  return library;
}

void NcclLibrary::require(ncclResult_t result, const std::string& what) const {
  if (result == ncclSuccess)
    return;
  throw std::runtime_error(
      fmt::format("NCCL, {}: {}: {}", what, error_string(result), last_error(nullptr)));
}

}  // namespace pipewright::exec
