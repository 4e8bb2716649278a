#pragma once

// Closed forms for bubble and activations that several schedules share.

#include <algorithm>

#include "catalog.hpp"

namespace pipewright::plan {

/// The bubble with one stage per rank and a flush.
inline ClosedForm flush_bubble(std::string words = "(P-1)(F+B)") {
  return {std::move(words),
          [](const ScheduleSizes& s) { return (s.ranks - 1) * (s.forward + s.backward()); }};
}

/// The bubble with V chunks per rank in a loop.
inline ClosedForm looped_bubble(bool (*holds)(const ScheduleSizes&)) {
  return {"(P-1)(F+B)/V", [holds](const ScheduleSizes& s) -> std::optional<double> {
            if (!holds(s))
              return {};
            return (s.ranks - 1) * (s.forward + s.backward()) / s.chunks;
          }};
}

/// The activations of a loop if P divides M. Their number is at most M V.
inline ClosedForm looped_activations() {
  return {"P + (P-1)/V", [](const ScheduleSizes& s) -> std::optional<double> {
            if (s.microbatches % s.ranks != 0)
              return {};
            return std::min<double>(s.microbatches, s.ranks + (s.ranks - 1.0) / s.chunks);
          }};
}

inline ClosedForm one_f_one_b_activations() {
  return {"min(M, P)", [](const ScheduleSizes& s) { return std::min(s.microbatches, s.ranks); }};
}

/// The bubble of two chunks per rank in a V.
inline ClosedForm no_bubble_in_a_v() {
  return {"0", [](const ScheduleSizes& s) -> std::optional<double> {
            if (!s.equal_times() || s.microbatches < 2 * s.ranks - 1)
              return {};
            return 0;
          }};
}

/// The bubble of a flush divided by `divisor`, for equal times and at least `rounds` P
/// microbatches.
inline ClosedForm part_of_flush_bubble(std::string words, double divisor, int rounds) {
  return {.words = std::move(words),
          .value = [divisor, rounds](const ScheduleSizes& s) -> std::optional<double> {
            if (!s.equal_times() || s.microbatches < rounds * s.ranks)
              return {};
            return (s.ranks - 1) * (s.forward + s.backward()) / divisor;
          },
          .is_limit = true};
}

inline ClosedForm constant(std::string words, double value) {
  return {std::move(words), [value](const ScheduleSizes&) { return value; }};
}

}  // namespace pipewright::plan
