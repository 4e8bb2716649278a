#pragma once

// Which rank has become slow: by what it computes itself, waiting left out, beside its own
// prediction and beside its own earlier steps. That all get slower alike, as on a loaded machine,
// names nobody.

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/loop/predict/plan.hpp"
#include "pipewright/loop_torch/membership.hpp"
#include "pipewright/loop_torch/resume.hpp"

namespace pipewright::loop {

/// What a rank's latest steps took beside what they should have: as parts of that.
struct PaceBeside {
  double usual_s = 0;          // compute of a step; 0: not known
  double least = 0, most = 0;  // of the latest steps, over it
};

/// What a rank tells of its latest steps: five at least, and a second of them at least.
struct Pace {
  double compute_s = 0;                 // of a step, in the middle
  double usual_step_s = 0, step_s = 0;  // a whole step, from its begin to its end
  int steps = 0;
  PaceBeside prediction, earlier;
};
/// For another process. Nothing where the text is empty.
std::string to_text(const Pace& pace);
std::optional<Pace> pace_from_text(const std::string& text);

/// The latest steps of one rank.
class PaceOfRank {
 public:
  /// `predicted_s`: compute of a step; 0: nobody knows.
  explicit PaceOfRank(double predicted_s) : predicted_s_(predicted_s) {}

  void add_step(double compute_s, double step_s);
  /// Nothing before there are enough steps. Looks at each of the latest ones.
  std::optional<Pace> pace() const;

 private:
  struct Step {
    double compute_s = 0, step_s = 0;
  };
  static Step middle_of(const std::vector<Step>& steps);

  double predicted_s_;
  int warm_up_left_ = 2;
  std::vector<Step> first_;      // behind the warm-up: what later ones are held against
  std::optional<Step> earlier_;  // their middle, once they are enough
  std::deque<Step> latest_;
  double latest_s_ = 0;  // all of them
};

/// Those whose every late step was at least one and a half times what it was earlier, or twice what
/// is predicted, and so much beside what the others' were at most. By rank.
std::vector<bool> slow_ranks(const std::vector<std::optional<Pace>>& paces);

/// Whether its earlier steps say so of one that is slow; otherwise its prediction does.
bool is_slow_by_earlier(const Pace& slow);

/// "rank 2 is slow: …" with what it computes, what it should, and what that costs the step.
std::string slow_words(int rank, const Pace& pace);

/// Watches the ranks of this process, and in a job, those of the others by what they tell with
/// their signs of life: no message is sent for it.
class SlowRanks {
 public:
  SlowRanks(const plan::Scenario& scenario, const Plan& plan, Membership& members);

  /// From the rank's own thread.
  void ran(const exec::InstructionRecord& record);
  /// After each step. Tells on the first process who has become slow, and who no longer is. Quick
  /// steps are looked at several at once.
  void end_step(double step_s, const Say& say);
  /// Of all that are named as slow; empty: none is.
  std::string words() const;
  /// While a rank is named as slow.
  std::optional<Pace> slow_pace(int rank) const;

 private:
  std::vector<std::optional<Pace>> paces() const;

  Membership& members_;
  std::vector<double> compute_s_;  // of the step under way, by rank of the job
  std::vector<PaceOfRank> ranks_;
  double not_looked_at_s_ = 0;               // steps since the last look
  std::vector<std::optional<Pace>> latest_;  // as of that look, by rank
  std::vector<bool> named_;
};

}  // namespace pipewright::loop
