#pragma once

// Detects slow ranks. A rank's own compute time, without waiting, is compared with its prediction
// and with its earlier steps. If all ranks get equally slower, as on a loaded machine, none is
// reported.

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/loop/predict/plan.hpp"
#include "pipewright/loop_torch/membership.hpp"
#include "pipewright/loop_torch/resume.hpp"

namespace pipewright::loop {

/// The compute time of a rank's latest steps relative to a reference.
struct RelativePace {
  double usual_s = 0;          // reference compute time of a step; 0 if unknown
  double least = 0, most = 0;  // smallest and largest of the latest steps, as a multiple of usual_s
};

/// The pace of a rank over its latest steps: at least five, and at least one second in total.
struct Pace {
  double compute_s = 0;                 // median per step
  double usual_step_s = 0, step_s = 0;  // median duration of a whole step, earlier and now
  int steps = 0;
  RelativePace prediction, earlier;
};
/// Encodes the pace for another process. `pace_from_text` returns nothing if the text is empty.
std::string to_text(const Pace& pace);
std::optional<Pace> pace_from_text(const std::string& text);

/// The latest steps of one rank.
class PaceOfRank {
 public:
  /// `predicted_s` is the predicted compute time of a step; 0 if unknown.
  explicit PaceOfRank(double predicted_s) : predicted_s_(predicted_s) {}

  void add_step(double compute_s, double step_s);
  /// Returns the pace over the latest steps, or nothing before there are enough.
  std::optional<Pace> pace() const;

 private:
  struct Step {
    double compute_s = 0, step_s = 0;
  };
  static Step middle_of(const std::vector<Step>& steps);

  double predicted_s_;
  int warm_up_left_ = 2;
  std::vector<Step> first_;      // the steps after warm-up that later steps are compared with
  std::optional<Step> earlier_;  // median of first_, once it is complete
  std::deque<Step> latest_;
  double latest_s_ = 0;  // total duration of latest_
};

/// Returns, by rank, whether the rank is slow: whether even its fastest recent step took 1.5 times
/// its earlier steps, or twice its prediction. If the other ranks got slower too, the threshold
/// rises by the median of their slow-downs.
std::vector<bool> slow_ranks(const std::vector<std::optional<Pace>>& paces);

/// Returns true if the rank is slow compared with its earlier steps, and false if only its
/// prediction says so.
bool is_slow_by_earlier(const Pace& slow);

/// Returns "rank 2 is slow: …" with its compute time, the expected time, and the cost per step.
std::string slow_words(int rank, const Pace& pace);

/// Watches the ranks of this process. In a job, the pace of the other ranks arrives with their
/// heartbeats, so no extra message is sent.
class SlowRanks {
 public:
  SlowRanks(const plan::Scenario& scenario, const Plan& plan, Membership& members);

  /// Records an instruction; called on the rank's own thread.
  void ran(const exec::InstructionRecord& record);
  /// Call after each step. On the first process, reports which ranks have become slow and which
  /// have recovered. Short steps are evaluated several at once.
  void end_step(double step_s, const Say& say);
  /// Describes all ranks that are currently reported as slow; empty if there are none.
  std::string words() const;
  /// Returns the pace of a rank while it is reported as slow.
  std::optional<Pace> slow_pace(int rank) const;

 private:
  std::vector<std::optional<Pace>> paces() const;

  Membership& members_;
  std::vector<double> compute_s_;  // of the current step, by rank of the job
  std::vector<PaceOfRank> ranks_;
  double not_looked_at_s_ = 0;               // duration of the steps since the last evaluation
  std::vector<std::optional<Pace>> latest_;  // by rank, as of the last evaluation
  std::vector<bool> named_;
};

}  // namespace pipewright::loop
