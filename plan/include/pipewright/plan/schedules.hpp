#pragma once

// The generators: pure functions from sizes to a Schedule, one file each in src/schedules.

#include <string>
#include <vector>

#include "pipewright/plan/schedule.hpp"

namespace pipewright::plan {

/// GPipe (Huang et al., NeurIPS 2019): all forwards, then all backwards. Every rank keeps M
/// activations alive. With equal stages the bubble is (P - 1) / (M + P - 1) of the step.
/// Needs stages >= 1 and microbatches >= 1; throws InputError otherwise.
Schedule make_gpipe(int stages, int microbatches);

/// 1F1B with flush (Narayanan et al., ICML 2021). Rank r keeps at most min(M, P - r) activations
/// alive. With equal stages the bubble is (P - 1) / (M + P - 1) of the step.
/// Needs stages >= 1 and microbatches >= 1 (M < P included); throws InputError otherwise.
Schedule make_1f1b(int stages, int microbatches);

/// The names that `make_schedule` knows, in the order of the documentation.
const std::vector<std::string>& schedule_names();

/// A generator by name, any case. Throws InputError that lists the names.
Schedule make_schedule(const std::string& name, int stages, int microbatches);

}  // namespace pipewright::plan
