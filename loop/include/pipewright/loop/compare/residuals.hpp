#pragma once

// Breaks the error of a prediction (measured less predicted) down: per rank into a budget that adds
// up to the error, and along the measured critical path into a list of causes.

#include <string>
#include <vector>

#include "pipewright/plan/quantity.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::loop {

/// The error (measured less predicted) of one rank. At every instant a rank either computes or is
/// idle for exactly one cause. So compute, transfer, waiting and launch add up to the error of the
/// iteration on every rank.
struct RankResidual {
  double compute_s = 0;
  double transfer_s = 0;  // idle time: transfer, queue and exposed communication
  double waiting_s = 0;   // idle time: warm-up, cool-down and imbalance, while others compute
  double launch_s = 0;    // idle time although the next action could have started
  plan::Bytes memory;     // error of the peak memory; 0 if a timeline has no memory samples
  double sum() const { return compute_s + transfer_s + waiting_s + launch_s; }
};

/// A part of the iteration's error that is attributed to one place.
struct ResidualCause {
  enum class Kind {
    Compute,   // the actions of a stage on a rank took longer
    Transfer,  // the transfers from one rank to another took longer
    Reduction,
    Launch,  // a rank started an action later than it could have
    /// The measured critical path was not the longest path in the prediction. Its predicted length
    /// less the predicted iteration is negative and offsets a part of the other causes.
    Overlap,
  };
  Kind kind = Kind::Compute;
  int rank = -1;
  int stage = -1;  // only for Compute
  int other = -1;  // only for Transfer: the receiver
  double seconds = 0;
  std::string text;  // "stage 3 on rank 3 computes 12.000 ms more than predicted"
};

struct Residuals {
  double predicted_s = 0;  // of the iteration
  double measured_s = 0;
  std::vector<RankResidual> ranks;
  /// Differences between the measured durations of the events on the measured critical path and
  /// their predicted durations, summed by place. The largest is first and `Overlap` is last;
  /// together they add up to the error of the iteration. A transfer is counted from the moment its
  /// data are ready. Rounding errors are dropped.
  std::vector<ResidualCause> causes;
  double difference() const { return measured_s - predicted_s; }
};

/// Breaks down the error between two simulations or measurements of the same Program. The peaks are
/// by rank; both lists may be empty.
Residuals residuals_of(const sim::Structure& structure, const sim::Times& predicted,
                       const sim::Times& measured,
                       const std::vector<plan::Bytes>& predicted_peaks = {},
                       const std::vector<plan::Bytes>& measured_peaks = {});
/// Breaks down the error between two timelines of the structure's Program. Throws InputError as
/// `sim::times_of` does. Use `plan::timeline_of` to convert an EventTable.
Residuals residuals_of(const sim::Structure& structure, const plan::Timeline& predicted,
                       const plan::Timeline& measured);

}  // namespace pipewright::loop
