#pragma once

// How the workers of a whole job stand below each other: by themselves, by replica or by stage, the
// slowest on top or in the order of ranks.

#include <string>
#include <vector>

#include "pipewright/gui/timeline/row_layout.hpp"
#include "pipewright/trace/straggler/straggler_report.hpp"

namespace pipewright::gui {

enum class JobGroups { None, Replicas, Stages };
enum class JobOrder { SlowestFirst, Ranks };

struct JobArrangement {
  JobGroups groups = JobGroups::None;
  JobOrder order = JobOrder::SlowestFirst;
  friend bool operator==(const JobArrangement&, const JobArrangement&) = default;
};

/// All workers by their ranks, so that a row of `job_timeline` has the number of its worker; behind
/// them comes the row of the steps.
std::vector<int> by_rank(const trace::JobLayout& layout);

/// The order and the groups of a job's rows; the steps stand pinned above. A group stands where its
/// slowest worker does. `report`: as long as it is null nobody is known to be slow, and ranks stand
/// in their order.
RowState job_rows(const trace::JobLayout& layout, const trace::StragglerReport* report,
                  JobArrangement arrangement);

/// What stands beside the name of each worker: its S_w.
RowNotes job_notes(const trace::StragglerReport& report);

}  // namespace pipewright::gui
