#pragma once

// NCCL, loaded at run time.

#include <nccl.h>

#include <string>

namespace pipewright::exec {

/// NCCL's functions. The library is large and comes with LibTorch's CUDA libraries, so it is loaded
/// when it is first asked for.
struct NcclLibrary {
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) init_rank;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclCommFinalize) finalize;
  decltype(&ncclCommDestroy) destroy;
  decltype(&ncclCommGetAsyncError) async_error;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
  decltype(&ncclGetErrorString) error_string;
  decltype(&ncclGetLastError) last_error;

  /// Throws InputError where there is none.
  static const NcclLibrary& get();
  /// Throws std::runtime_error that says what NCCL has to say of a failure.
  void require(ncclResult_t result, const std::string& what) const;
};

}  // namespace pipewright::exec
