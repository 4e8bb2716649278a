#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "job/watch.hpp"
#include "tensor_mail.hpp"

namespace pipewright::exec {

/// Exchanges among some ranks of a job, over connections of their own: they may run beside the
/// transfers, and exchanges of several groups beside each other.
class GlooExchange {
 public:
  explicit GlooExchange(Job& job);

  /// As Transport::exchange.
  std::vector<Tensors> exchange(const std::vector<int>& group, int rank, const Tensors& mine);
  void end(const std::string& why) { mesh_.end(why); }

 private:
  int tag_of(const std::vector<int>& group);

  Job& job_;
  GlooMesh mesh_;
  Watch::Store numbers_;  // of the groups
  std::mutex mutex_;
  std::map<std::vector<int>, int> tags_;  // by group
};

}  // namespace pipewright::exec
