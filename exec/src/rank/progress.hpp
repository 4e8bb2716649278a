#pragma once

// What a rank is at, written by its thread and read by others.

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "job/report.hpp"
#include "pipewright/exec/job/job_rank.hpp"
#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::exec {

/// Ranks that a rank meets in the middle of an action.
struct Meeting {
  std::vector<int> ranks;  // of the job
  const char* who;         // in the words of reports
};

class Progress {
 public:
  static constexpr const char* end_of_step = "the end of a step";

  /// `told`: who else is told what the rank does next; may be empty. The reference is kept.
  explicit Progress(const std::function<void(const plan::Instruction&)>& told);

  void starting(const plan::Instruction& i);
  /// Two that take turns.
  void starting(const plan::Instruction& first, const plan::Instruction& second);
  void at_end_of_step();
  /// A rank of the job; -1: for none.
  void waits_for(int rank) { waits_for_.store(rank, std::memory_order_relaxed); }
  /// It waits for those who share out its stage, in the next of an action's collectives with them;
  /// and no more. The meeting outlives this.
  void meets(const Meeting& meeting);
  void has_met() { meeting_.store(nullptr, std::memory_order_relaxed); }

  /// What it is at and how often it has begun something. Between passes, and when it is done with
  /// one, it waits for all others of the job.
  Beat beat(const JobRank& self) const;

 private:
  void starting(std::uint64_t activity);

  const std::function<void(const plan::Instruction&)>& told_;
  std::atomic<std::uint64_t> at_;
  std::atomic<int> waits_for_{-1};
  std::atomic<int> meetings_{0};  // in this action
  std::atomic<const Meeting*> meeting_{nullptr};
  std::atomic<long> moves_{0};
};

}  // namespace pipewright::exec
