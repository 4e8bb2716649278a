#pragma once

// Where a prediction's error goes: measured less predicted, for each rank as a budget that adds up,
// and along the measured critical path as a list of causes.

#include <string>
#include <vector>

#include "pipewright/plan/quantity.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::loop {

/// Measured less predicted, of one rank. At every instant a rank computes or is idle for one cause,
/// so compute, transfer, waiting and launch together are the iteration's difference, on every rank.
struct RankResidual {
  double compute_s = 0;
  double transfer_s = 0;  // idle: transfer, queue and exposed
  double waiting_s = 0;   // idle: warm-up, cool-down and imbalance, while others compute
  double launch_s = 0;    // idle though nothing held it back
  plan::Bytes memory;     // of the peaks; 0 where a side has no samples
  double sum() const { return compute_s + transfer_s + waiting_s + launch_s; }
};

/// A part of the iteration's difference that has one place.
struct ResidualCause {
  enum class Kind {
    Compute,   // the actions of a stage on a rank took longer
    Transfer,  // the transfers from a rank to another did
    Reduction,
    Launch,   // a rank began later than it could have
    Overlap,  // the predicted time beside this path: it was not the longest one then, and the
              // difference hides as much of what the others name
  };
  Kind kind = Kind::Compute;
  int rank = -1;
  int stage = -1;  // of Compute
  int other = -1;  // of Transfer: the receiver
  double seconds = 0;
  std::string text;  // "stage 3 on rank 3 computes 12.000 ms longer than predicted"
};

struct Residuals {
  double predicted_s = 0;  // iteration
  double measured_s = 0;
  std::vector<RankResidual> ranks;
  /// What the events on the measured critical path took, less what the prediction said of the same
  /// events, by place; the largest first, and `Overlap` last. Together they are the iteration's
  /// difference. A transfer counts from when its data are there. What rounding leaves is no cause.
  std::vector<ResidualCause> causes;
  double difference() const { return measured_s - predicted_s; }
};

/// Both of one Program, the peaks by rank, or none.
Residuals residuals_of(const sim::Structure& structure, const sim::Times& predicted,
                       const sim::Times& measured,
                       const std::vector<plan::Bytes>& predicted_peaks = {},
                       const std::vector<plan::Bytes>& measured_peaks = {});
/// Compares two timelines of the structure's Program. Throws InputError as `sim::times_of` does. An
/// EventTable becomes one by `plan::timeline_of`.
Residuals residuals_of(const sim::Structure& structure, const plan::Timeline& predicted,
                       const plan::Timeline& measured);

}  // namespace pipewright::loop
