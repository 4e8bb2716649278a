#pragma once

// NCCL, loaded at run time.

#include <nccl.h>

#include <string>

namespace pipewright::exec {

/// NCCL's functions. The library is large and comes with LibTorch's CUDA libraries, so it is loaded
/// at its first use.
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

  /// Loads NCCL at the first call. Throws InputError if it is not installed.
  static const NcclLibrary& get();
  /// Throws std::runtime_error with NCCL's description of a failure.
  void require(ncclResult_t result, const std::string& what) const;
};

}  // namespace pipewright::exec
