#include "pipewright/plan/cluster/runtime_messages.hpp"

namespace pipewright::plan {

Cluster with_messages(Cluster cluster, const RuntimeCost& runtime) {
  for (Link* link : links_of(cluster)) {
    link->overheads.send = {runtime.send, runtime.send_bandwidth_per_s};
    link->overheads.receive = {runtime.receive, runtime.receive_bandwidth_per_s};
  }
  return cluster;
}

}  // namespace pipewright::plan
