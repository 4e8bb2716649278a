#pragma once

// Schedules with two stages a rank in the shape of a V: rank r of P holds the stages r and
// 2P - 1 - r, so a microbatch turns on the last rank and its loss stands where it entered. The
// backward is split into input and weight gradients; the latter fill bubbles.
//
// Activations are counted in units of half a stage: a forward keeps two, its input gradient and its
// weight gradient free one each. 1F1B over the same model keeps 4P units on its first rank.
//
// Where costs are given, the order is chosen for them. It stays sound for any others.

#include <optional>

#include "pipewright/plan/schedule.hpp"

namespace pipewright::plan {

/// How long one stage takes for one microbatch, and how long a tensor takes to another rank. Only
/// the ratios count.
struct VCosts {
  double forward = 1;
  double input_gradient = 1;
  double weight_gradient = 1;
  double transfer = 0;
};

/// V-Half (Qi et al., "Pipeline Parallelism with Controllable Memory", NeurIPS 2024). About half of
/// the activations of 1F1B: at most 2P + 4 units on a rank. With equal costs the bubble is about 3P
/// forwards of a stage, half of that of 1F1B.
/// Needs ranks >= 1, microbatches >= 1 and costs that are not negative; throws InputError
/// otherwise.
Schedule make_v_half(int ranks, int microbatches, const VCosts& costs = {});

/// V-Min (same paper). About a third of the activations of 1F1B: at most 4P / 3 + 4 units on a
/// rank. With equal costs the bubble is about 4P forwards of a stage; with unequal ones it grows
/// with M. Needs ranks >= 1, microbatches >= 1 and costs that are not negative; throws InputError
/// otherwise.
Schedule make_v_min(int ranks, int microbatches, const VCosts& costs = {});

/// ZB-V (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024), V-ZB in the later paper. No
/// rank keeps more than `memory_units`; the default 4P is what the first rank of 1F1B keeps. With
/// equal costs, the default and M >= 2P there is no bubble. Needs ranks >= 1, microbatches >= 1,
/// costs that are not negative, and memory_units >= 4, which is one microbatch in both stages of a
/// rank; throws InputError otherwise.
Schedule make_v_zb(int ranks, int microbatches, const VCosts& costs = {},
                   std::optional<int> memory_units = {});

}  // namespace pipewright::plan
