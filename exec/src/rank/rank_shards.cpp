#include "rank_shards.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "pipewright/exec/transport/late_members.hpp"

namespace pipewright::exec {
namespace {

/// Makes reports say that the rank waits for its group, while it lives.
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
  const Timestamp begin = stopwatch_.now();
  std::vector<Tensors> all = transport_.all_to_all(meeting_.ranks, self_, for_each, Lane::Compute);
  met_.push_back({{begin, stopwatch_.now()}});
  return all;
}

void RankShards::learn_waits() {
  if (met_.empty())
    return;
  const WaitingForShards waiting(progress_, meeting_);
  std::vector<double> seconds;
  for (const Met& each : met_) {
    const bool is_timed = !compute_.native() || !each.when.begin.device.on_cpu();
    seconds.push_back(is_timed ? each.when.end.since(each.when.begin).value : -1);
  }
  const std::vector<double> waits = waits_for_late(transport_, meeting_.ranks, self_, seconds);
  for (std::size_t at = 0; at < waits.size(); ++at)
    met_[at].late = {waits[at]};
}

Tensors RankShards::all_to_all(const Tensors& parts) {
  const OnStream stream(compute_);
  Timestamp begin = stopwatch_.now();
  std::vector<Tensors> for_each;
  for (const at::Tensor& part : parts)  // without their autograd graph, which belongs to this rank
    for_each.push_back({part.defined() ? part.detach() : part});
  std::vector<Tensors> from_each;
  const plan::Seconds* late = nullptr;
  Clock::duration alone{};
  const auto meet = [&] {
    from_each = exchanged(for_each);
    late = &met_.back().late;
  };
  if (baton_ == nullptr)
    meet();
  else
    alone = baton_->meet(meet);
  Tensors all;
  for (Tensors& theirs : from_each)
    all.push_back(std::move(theirs.at(0)));
  const Timestamp end = stopwatch_.now();
  if (baton_ != nullptr)  // time that overlaps with the other strand's compute does not count
    begin.host = end.host - alone;
  stopwatch_.note_shards({{begin, end}, late}, baton_ == nullptr ? 0 : baton_->holder());
  return all;
}

}  // namespace pipewright::exec
