#pragma once

// Finds the processes of a job that share a GPU, because NCCL must be told.

#include <string>
#include <vector>

namespace pipewright::exec {

/// The GPU of a rank. Launchers may show each process only its own GPU, as the first one, so GPUs
/// are identified by UUID.
struct GpuOfRank {
  std::string host;  // NCCL's name of the host
  std::string uuid;
};

/// Returns, for each rank, the host name to set for NCCL (NCCL_HOSTID); empty if NCCL's own is
/// right. NCCL requires that each process of a host has its own GPU. If several share one, all but
/// the first are presented as processes of other hosts, and lose NVLink and shared memory between
/// them.
std::vector<std::string> hosts_for_nccl(const std::vector<GpuOfRank>& ranks);

}  // namespace pipewright::exec
