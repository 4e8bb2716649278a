#include "pipewright/exec/device/shared_gpus.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace pipewright::exec {

std::vector<std::string> hosts_for_nccl(const std::vector<GpuOfRank>& ranks) {
  std::map<std::pair<std::string, std::string>, int> users;  // so far, by host and GPU
  std::vector<std::string> hosts;
  for (const GpuOfRank& rank : ranks) {
    const int before = users[{rank.host, rank.uuid}]++;
    hosts.push_back(before == 0 ? "" : fmt::format("{}-{}", rank.host, before));
  }
  return hosts;
}

}  // namespace pipewright::exec
