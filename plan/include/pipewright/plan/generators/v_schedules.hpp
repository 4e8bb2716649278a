#pragma once

// Schedules with two stages per rank in the shape of a V: rank r of P holds the stages r and
// 2P - 1 - r, so a microbatch turns around on the last rank and its loss is on the rank where it
// entered. The backward is split into input and weight gradients, and weight gradients fill
// bubbles.
//
// Activations are counted in units of half a stage: a forward adds two, its input gradient and its
// weight gradient free one each. 1F1B over the same model keeps 4P units on its first rank.
//
// If costs are given, the order is optimized for them; for unequal stages, for their mean. It stays
// valid for all other costs.

#include <optional>

#include "pipewright/plan/costs/schedule_costs.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// V-Half (Qi et al., "Pipeline Parallelism with Controllable Memory", NeurIPS 2024, arXiv
/// 2405.15362): about half of what 1F1B keeps, at most 4 floor(P / 2) + 4 units on a rank. With
/// equal costs the bubble is about 3P forwards of a stage, half of 1F1B's. Needs ranks >= 1,
/// microbatches >= 1 and finite costs >= 0; throws InputError otherwise.
Schedule make_v_half(int ranks, int microbatches, const ScheduleCosts& costs = {});

/// V-Min (same paper): about a third of what 1F1B keeps, at most 4 floor((P + 4) / 3) units on a
/// rank. With equal costs the bubble is about 4P forwards of a stage; with others it grows with M.
/// Needs ranks >= 1, microbatches >= 1 and finite costs >= 0; throws InputError otherwise.
Schedule make_v_min(int ranks, int microbatches, const ScheduleCosts& costs = {});

/// ZB-V (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, arXiv 2401.10241), called V-ZB
/// in the later paper: as much memory as 1F1B and no bubble, with equal costs, free transfers and
/// M >= 2P - 1. No rank keeps more than `memory_units`, 4P by default. A lower limit lengthens the
/// step: by the bubble of V-Half or V-Min where those fit, down to one microbatch at a time at 4
/// units. Needs ranks >= 1, microbatches >= 1, finite costs >= 0 and memory_units >= 4; throws
/// InputError otherwise.
Schedule make_v_zb(int ranks, int microbatches, const ScheduleCosts& costs = {},
                   std::optional<int> memory_units = {});

}  // namespace pipewright::plan
