#pragma once

// The shards of a layer as a measurement has them: one of them alone, for which the parts of the
// others are made up, or all, which pass on what they have over a transport.

#include <vector>

#include "pipewright/exec/training/shard_group.hpp"
#include "pipewright/exec/transport/transport.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::profiler {

/// Which shard is measured.
struct ShardSeat {
  int index = 0;
  int count = 1;
  int groups = 1;       // as of exec::ShardPlace
  bool copies = false;  // whether what comes from others is memory of its own, as between processes
};

/// What a shard has passed on so far.
struct PassedOn {
  int times = 0;
  plan::Bytes bytes{};    // to all others together
  plan::Seconds seconds;  // until it had what they passed on
};

class PlayedShards final : public exec::ShardGroup {
 public:
  explicit PlayedShards(const ShardSeat& seat) : seat_(seat) {}

  /// From here on the shards on `ranks` of a job, of which this one is on `self`, pass on what they
  /// have over `transport`, which outlives this.
  void meet(exec::Transport& transport, const std::vector<int>& ranks, int self);
  /// From here on it is alone, and gets what it has passed on itself, in the shapes of the others.
  void part() { transport_ = nullptr; }
  bool is_alone() const { return transport_ == nullptr; }

  exec::Tensors all_to_all(const exec::Tensors& parts) override;
  const PassedOn& passed_on() const { return passed_on_; }
  /// How long it has waited for one that was late, each time since they met or this was asked last.
  /// Those who have met ask it together.
  std::vector<double> waits();

 private:
  exec::Tensors from_others(const exec::Tensors& parts);
  exec::Tensors made_up(const exec::Tensors& parts);

  ShardSeat seat_;
  exec::Transport* transport_ = nullptr;
  std::vector<int> ranks_;  // of the shards, in the job
  int self_ = 0;
  std::vector<std::int64_t> pieces_;  // numbers of the pieces that were added up last, by shard
  PassedOn passed_on_;
  std::vector<double> met_;  // seconds of each meeting with the others
};

}  // namespace pipewright::profiler
