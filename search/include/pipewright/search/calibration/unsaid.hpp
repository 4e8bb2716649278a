#pragma once

// What a table of runs leaves unsaid and its other columns tell.

#include <vector>

#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/plan/cluster/cluster.hpp"

namespace pipewright::search {

/// For runs that name their schedules: these order their transfers ahead, so that a hop costs what
/// the link takes, 0.15 of its bandwidth (T_comm of Zero Bubble's Table 9, arXiv 2401.10241: 0.53
/// to 0.76 ms for 24 and 27 MiB between two A100). A cluster file that has its own figure keeps it.
plan::Cluster cluster_of(const plan::Cluster& cluster,
                         const std::vector<models::MeasuredRun>& runs);

/// Which attention explains best what memory the runs were measured at; scores, where none was.
/// Each of them can be timed on the cluster.
plan::AttentionKind attention_of(const plan::Cluster& cluster,
                                 const std::vector<models::MeasuredRun>& runs);
/// Of all that do not say it.
void set_attention(std::vector<models::MeasuredRun>& runs, plan::AttentionKind attention);

}  // namespace pipewright::search
