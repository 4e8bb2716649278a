#include "rank_shards.hpp"

#include <ATen/ATen.h>

#include <utility>

namespace pipewright::exec {
namespace {

/// While it lives, reports say that the rank waits for them.
class WaitingForShards {
 public:
  WaitingForShards(Progress& progress, const Meeting& meeting) : progress_(progress) {
    progress_.meets(meeting);
  }
  ~WaitingForShards() { progress_.has_met(); }
  WaitingForShards(const WaitingForShards&) = delete;
  WaitingForShards& operator=(const WaitingForShards&) = delete;

 private:
  Progress& progress_;
};

}  // namespace

RankShards::RankShards(int self, Meeting others, const Stream& compute, Transport& transport,
                       Progress& progress, Stopwatch& stopwatch)
    : self_(self),
      meeting_(std::move(others)),
      compute_(compute),
      transport_(transport),
      progress_(progress),
      stopwatch_(stopwatch) {}

Tensors RankShards::all_to_all(const Tensors& parts) {
  const OnStream stream(compute_);
  const Timestamp begin = stopwatch_.now();
  std::vector<Tensors> for_each;
  for (const at::Tensor& part : parts)  // whose graph is this rank's own
    for_each.push_back({part.defined() ? part.detach() : part});
  std::vector<Tensors> from_each;
  {
    const WaitingForShards waiting(progress_, meeting_);
    from_each = transport_.all_to_all(meeting_.ranks, self_, for_each, Lane::Compute);
  }
  Tensors all;
  for (Tensors& theirs : from_each)
    all.push_back(std::move(theirs.at(0)));
  stopwatch_.note_shards(begin);
  return all;
}

}  // namespace pipewright::exec
