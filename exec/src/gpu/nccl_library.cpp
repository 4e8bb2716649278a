#include "nccl_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "pipewright/exec/device/devices.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr)
    throw plan::InputError(fmt::format("NCCL: {}", dlerror()));
}

NcclLibrary load() {
  gpus();  // LibTorch's CUDA libraries know where it lies, and bring it with them
  void* const library = dlopen("libnccl.so.2", RTLD_LAZY);
  if (library == nullptr)
    throw plan::InputError(fmt::format("NCCL: {}", dlerror()));
  NcclLibrary nccl{};
  find(library, "ncclGetUniqueId", nccl.get_unique_id);
  find(library, "ncclCommInitRankConfig", nccl.init_rank);
  find(library, "ncclCommAbort", nccl.abort);
  find(library, "ncclGroupStart", nccl.group_start);
  find(library, "ncclGroupEnd", nccl.group_end);
  find(library, "ncclSend", nccl.send);
  find(library, "ncclRecv", nccl.receive);
  find(library, "ncclGetErrorString", nccl.error_string);
  find(library, "ncclGetLastError", nccl.last_error);
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
