#pragma once

// Which processes of a job share a GPU, as NCCL has to be told of it.

#include <string>
#include <vector>

namespace pipewright::exec {

/// The GPU of a rank. Launchers may show each process its own GPU alone, as its first one: what
/// tells GPUs apart is their UUID.
struct GpuOfRank {
  std::string host;  // as NCCL knows it
  std::string uuid;
};

/// By rank: the host that NCCL is to take the rank's for (NCCL_HOSTID), empty where its own will
/// do. NCCL gives each process of a host a GPU of its own; where several share one, those beyond
/// the first are processes of other hosts to it, and lose NVLink and shared memory between them.
std::vector<std::string> hosts_for_nccl(const std::vector<GpuOfRank>& ranks);

}  // namespace pipewright::exec
