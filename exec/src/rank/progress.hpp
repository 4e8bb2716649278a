#pragma once

// A rank's current activity, written by its thread and read by others.

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "job/report.hpp"
#include "pipewright/exec/job/job_rank.hpp"
#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::exec {

/// A group of ranks with which a rank communicates in the middle of an action.
struct Meeting {
  std::vector<int> ranks;  // of the job
  const char* who;         // the group's name in reports
};

class Progress {
 public:
  static constexpr const char* end_of_step = "the end of a step";

  /// `told` is called with each instruction that begins; it may be empty. Keeps a reference to it.
  explicit Progress(const std::function<void(const plan::Instruction&)>& told);

  void starting(const plan::Instruction& i);
  /// Reports two actions that take turns.
  void starting(const plan::Instruction& first, const plan::Instruction& second);
  void at_end_of_step();
  /// Reports that the rank waits for another rank of the job; -1 if for none.
  void waits_for(int rank) { waits_for_.store(rank, std::memory_order_relaxed); }
  /// Reports that the rank waits in the action's next collective with its tensor-parallel or
  /// expert-parallel group, until `has_met`. `meeting` must outlive this object.
  void meets(const Meeting& meeting);
  void has_met() { meeting_.store(nullptr, std::memory_order_relaxed); }

  /// Returns the rank's heartbeat. Between passes and at the end of a pass, the rank waits for all
  /// other ranks of the job.
  Heartbeat beat(const JobRank& self) const;

 private:
  void starting(std::uint64_t activity);

  const std::function<void(const plan::Instruction&)>& told_;
  std::atomic<std::uint64_t> at_;
  std::atomic<int> waits_for_{-1};
  std::atomic<int> meetings_{0};  // collectives in this action
  std::atomic<const Meeting*> meeting_{nullptr};
  std::atomic<long> moves_{0};
};

}  // namespace pipewright::exec
