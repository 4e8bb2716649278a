#pragma once

// Stages with different numbers of copies: a stage that takes twice as long is placed on twice as
// many ranks, and its copies take the microbatches in turn.

#include <vector>

#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// 1F1B-RR (PipeDream, Narayanan et al., SOSP 2019, section 3.2), with a flush. Stage s has
/// copies[s] ranks, those of stage 0 first, and microbatch m goes to copy m mod copies[s]. Each
/// rank runs 1F1B over its own microbatches, with (sum of copies from s on, less 1) div copies[s]
/// warm-up forwards: as many as keep the later ranks busy. One copy of each stage gives 1F1B.
/// Gradients of a stage's copies are summed, as `replicated_partition` assumes. Throws InputError
/// for no stage, a stage without a copy, no microbatch, or fewer microbatches than a stage has
/// copies.
Schedule make_1f1b_rr(const std::vector<int>& copies, int microbatches);

}  // namespace pipewright::plan
