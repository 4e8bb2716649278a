#pragma once

// The tensor-parallel group of a layer in a measurement: either one rank alone, with simulated data
// from the others, or all ranks, which communicate over a transport.

#include <vector>

#include "pipewright/exec/training/shard_group.hpp"
#include "pipewright/exec/transport/transport.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::profiler {

/// The tensor-parallel rank that is measured.
struct ShardSeat {
  int index = 0;
  int count = 1;
  int groups = 1;       // as in exec::TensorParallelPlace
  bool copies = false;  // true if received data are copies, as between processes
};

/// The communication of a tensor-parallel rank so far.
struct CommunicationTotals {
  int times = 0;
  plan::Bytes bytes{};    // sent to all others together
  plan::Seconds seconds;  // time until it had received the others' data
};

class PlayedShards final : public exec::TensorParallelGroup {
 public:
  explicit PlayedShards(const ShardSeat& seat) : seat_(seat) {}

  /// From here on the group communicates over `transport`, which must outlive this object. `ranks`
  /// are its ranks in a job, and `self` is this one.
  void meet(exec::Transport& transport, const std::vector<int>& ranks, int self);
  /// From here on the rank is alone, and receives its own data in the shapes of the others'.
  void part() { transport_ = nullptr; }
  bool is_alone() const { return transport_ == nullptr; }

  exec::Tensors all_to_all(const exec::Tensors& parts) override;
  const CommunicationTotals& passed_on() const { return passed_on_; }
  /// Returns how long it waited for a late rank in each collective since `meet` or the last call.
  /// All ranks of the group call it together.
  std::vector<double> waits();

 private:
  exec::Tensors from_others(const exec::Tensors& parts);
  exec::Tensors made_up(const exec::Tensors& parts);

  ShardSeat seat_;
  exec::Transport* transport_ = nullptr;
  std::vector<int> ranks_;  // of the group, in the job
  int self_ = 0;
  std::vector<std::int64_t> pieces_;  // sizes of the pieces that were summed last, by rank
  CommunicationTotals passed_on_;
  std::vector<double> met_;  // seconds of each collective with the others
};

}  // namespace pipewright::profiler
