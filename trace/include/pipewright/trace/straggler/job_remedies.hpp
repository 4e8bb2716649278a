#pragma once

// What would make the steps of a traced job shorter, simulated by the replay that explains it: slow
// workers replaced or left out, layers moved off a slow stage, microbatches dealt out or sorted by
// their length, another schedule. What a remedy has to know (how much slower a worker is, which
// layers to move) it learns on every second step, and what it saves is told of the others as well.

#include <string>
#include <vector>

#include "pipewright/trace/straggler/straggler_metrics.hpp"

namespace pipewright::trace {

struct SavedTime {
  double seconds = 0;  // of the mean step
  double part = 0;     // of it
};

struct Remedy {
  std::string kind;                  // "replace workers", "leave out a replica", "move layers", …
  std::string change;                // in words: which worker, how many layers, which schedule
  std::string supposed;              // what no trace tells
  double step_s = 0;                 // the mean step with it
  SavedTime saves{};                 // over all steps
  SavedTime on_learnt{}, on_kept{};  // over every second step, from the first on, and the others
  int activations = 0;  // of a microbatch on a stage of the model, that the fullest worker keeps
};

struct Remedies {
  double step_s = 0;        // as it is, replayed
  int activations = 0;      // likewise
  bool has_kept = false;    // there is more than one step
  std::vector<Remedy> all;  // what saves most on the learnt steps first
};

Remedies job_remedies(const JobSteps& steps, const StragglerMetrics& metrics);

/// How much longer each worker computes than the same stage of the other replicas does, in the mean
/// of the learnt steps; 1 where there is one replica.
std::vector<double> over_peers(const JobSteps& steps);

/// So much longer does each worker compute for reasons of its own: over the quickest replica of its
/// stage, less what all stages of its replica have in common, which is how long its microbatches
/// are. One stage alone cannot tell the two apart: `over_peers`.
std::vector<double> own_slowness(const JobSteps& steps);

/// So much of one's own is no noise; S_w, which knows only replicas and stages, may miss it.
inline constexpr double clearly_slow = 1.1;

/// All workers: those that are clearly slow, the slowest first, then by S_w.
std::vector<int> slowest_first(const StragglerMetrics& metrics,
                               const std::vector<double>& own_slowness);

}  // namespace pipewright::trace
