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

std::vector<Tensors> RankShards::exchanged(const std::vector<Tensors>& for_each) {
  const WaitingForShards waiting(progress_, meeting_);
  return transport_.all_to_all(meeting_.ranks, self_, for_each, Lane::Compute);
}

Tensors RankShards::all_to_all(const Tensors& parts) {
  const OnStream stream(compute_);
  Timestamp begin = stopwatch_.now();
  std::vector<Tensors> for_each;
  for (const at::Tensor& part : parts)  // whose graph is this rank's own
    for_each.push_back({part.defined() ? part.detach() : part});
  std::vector<Tensors> from_each;
  Clock::duration alone{};
  if (baton_ == nullptr)
    from_each = exchanged(for_each);
  else
    alone = baton_->meet([&] { from_each = exchanged(for_each); });
  Tensors all;
  for (Tensors& theirs : from_each)
    all.push_back(std::move(theirs.at(0)));
  const Timestamp end = stopwatch_.now();
  if (baton_ != nullptr)  // what went on beside the other's compute kept nobody
    begin.host = end.host - alone;
  stopwatch_.note_shards({begin, end}, baton_ == nullptr ? 0 : baton_->holder());
  return all;
}

}  // namespace pipewright::exec
