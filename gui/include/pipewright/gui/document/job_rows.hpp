#pragma once

// Arranges the rows of a whole job's workers: ungrouped, by replica or by stage, and sorted with
// the slowest on top or by rank.

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

/// Returns all workers by rank, so that a row of `job_timeline` has the number of its worker; the
/// row of the steps follows.
std::vector<int> by_rank(const trace::JobLayout& layout);

/// Returns the order and groups of a job's rows; the row of the steps is pinned at the top. A group
/// is placed by its slowest worker. While `report` is null no worker is known to be slow, and rows
/// are sorted by rank.
RowState job_rows(const trace::JobLayout& layout, const trace::StragglerReport* report,
                  JobArrangement arrangement);

/// Returns the note next to each worker's name: its S_w.
RowNotes job_notes(const trace::StragglerReport& report);

}  // namespace pipewright::gui
