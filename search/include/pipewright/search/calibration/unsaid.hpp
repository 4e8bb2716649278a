#pragma once

// Infers values that a table of runs does not contain from its other columns.

#include <vector>

#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::search {

/// Returns the cluster for runs that name their schedules. These post their transfers early, so a
/// point-to-point transfer takes the time of the link: 0.15 of its bandwidth (T_comm of Zero
/// Bubble's Table 9, arXiv 2401.10241: 0.53 to 0.76 ms for 24 and 27 MiB between two A100). A
/// cluster file with its own figure keeps it.
plan::Cluster cluster_of(const plan::Cluster& cluster,
                         const std::vector<models::MeasuredRun>& runs);

/// Returns the kind of attention that explains the runs' measured memory best; scores, if no memory
/// was measured. Every run must be one that can be timed on the cluster.
plan::AttentionKind attention_of(const plan::Cluster& cluster,
                                 const std::vector<models::MeasuredRun>& runs);
/// Sets the attention of all runs that do not say it.
void set_attention(std::vector<models::MeasuredRun>& runs, plan::AttentionKind attention);

}  // namespace pipewright::search
