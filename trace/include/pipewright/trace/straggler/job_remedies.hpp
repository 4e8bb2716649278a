#pragma once

// Remedies that would shorten the steps of a traced job, simulated by the replay that explains it:
// replacing or removing slow workers, moving layers off a slow stage, rebalancing microbatches or
// sorting them by length, another schedule. The parameters of a remedy (how much slower a worker
// is, which layers to move) are learned on every second step, and its savings are also reported for
// the other, held-out steps.

#include <string>
#include <vector>

#include "pipewright/trace/straggler/straggler_metrics.hpp"

namespace pipewright::trace {

struct SavedTime {
  double seconds = 0;  // saved in the mean step
  double part = 0;     // fraction of the mean step
};

struct Remedy {
  std::string kind;                  // "replace workers", "leave out a replica", "move layers", …
  std::string change;                // as text: which worker, how many layers, which schedule
  std::string supposed;              // assumptions that no trace can confirm
  double step_s = 0;                 // mean step time with the remedy
  SavedTime saves{};                 // over all steps
  SavedTime on_learnt{}, on_kept{};  // over every second step, from the first on, and over the
                                     // others
  int activations = 0;  // peak count, on the fullest worker, of saved microbatch activations (one
                        // model stage each)
};

struct Remedies {
  double step_s = 0;        // the traced step, replayed
  int activations = 0;      // likewise
  bool has_kept = false;    // there is more than one step
  std::vector<Remedy> all;  // largest saving on the learned steps first
};

Remedies job_remedies(const JobSteps& steps, const StragglerMetrics& metrics);

/// Returns, for each worker, its compute time relative to the same stage of the other replicas, as
/// a mean over the learned steps; 1 if there is one replica.
std::vector<double> over_peers(const JobSteps& steps);

/// Returns each worker's own slowness: its compute time relative to the fastest replica of its
/// stage, without the factor common to all stages of its replica, which comes from the length of
/// the replica's microbatches. With a single stage the two cannot be separated, and `over_peers` is
/// returned.
std::vector<double> own_slowness(const JobSteps& steps);

/// Own slowness from which a worker counts as slow rather than noisy. S_w, which sees only replicas
/// and stages, may miss it.
inline constexpr double clearly_slow = 1.1;

/// Returns all workers: first the clearly slow ones, slowest first, then the others by S_w.
std::vector<int> slowest_first(const StragglerMetrics& metrics,
                               const std::vector<double>& own_slowness);

}  // namespace pipewright::trace
