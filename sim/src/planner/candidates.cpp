#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"
#include "pipewright/sim/planner/plan_search.hpp"

namespace pipewright::sim {
namespace {

using plan::TrainingRun;

std::vector<int> divisors_of(int whole) {
  std::vector<int> divisors;
  for (int divisor = 1; divisor <= whole; ++divisor)
    if (whole % divisor == 0)
      divisors.push_back(divisor);
  return divisors;
}

/// Those asked for, else the divisors of `whole`.
std::vector<int> choices(const std::vector<int>& asked, int whole) {
  return asked.empty() ? divisors_of(whole) : asked;
}

/// All ways to cut the model, each part nested in the one before.
class Enumeration {
 public:
  Enumeration(const plan::Cluster& cluster, const PlanSpace& space)
      : cluster_(cluster), space_(space) {}

  std::vector<TrainingRun> all() {
    const int gpus = space_.model.gpus;
    for (const int used : space_.uses_fewer_gpus ? divisors_of(gpus) : std::vector{gpus})
      with_gpus(used);
    return std::move(found_);
  }

 private:
  void with_gpus(int gpus) {
    TrainingRun run = space_.model;
    run.gpus = gpus;
    // Sums in every layer do not pay between nodes.
    for (const int tensor : choices(space_.tensor, std::min(gpus, cluster_.devices_per_node))) {
      run.tensor = tensor;
      if (gpus % tensor != 0 || run.heads % tensor != 0 || run.hidden % tensor != 0)
        continue;
      for (const int pipeline : choices(space_.pipeline, run.layers)) {
        run.pipeline = pipeline;
        if (run.layers % pipeline == 0 && gpus % (tensor * pipeline) == 0)
          with_pipeline(run);
      }
    }
  }

  void with_pipeline(TrainingRun run) {
    const int others = run.gpus / run.tensor / run.pipeline;
    for (const int context : choices(space_.context, others)) {
      run.context = context;
      run.data = others / std::max(1, context);
      if (others % context != 0 || run.sequence % context != 0 || run.global_batch % run.data != 0)
        continue;
      for (const int expert : run.experts == 0 ? std::vector{1} : choices(space_.expert, others)) {
        run.expert = expert;
        if (others % expert == 0 && (run.experts == 0 || run.experts % expert == 0))
          with_microbatch(run);
      }
    }
  }

  void with_microbatch(TrainingRun run) {
    const int of_pipeline = run.global_batch / run.data;
    for (const int microbatch : choices(space_.microbatch, of_pipeline)) {
      run.microbatch = microbatch;
      if (of_pipeline % microbatch != 0)
        continue;
      for (const int chunks : choices(space_.chunks, run.layers / run.pipeline)) {
        run.chunks = chunks;
        const bool interleaves = chunks > 1;
        if (run.layers / run.pipeline % chunks == 0 &&
            (!interleaves || (run.pipeline > 1 && run.microbatches() % run.pipeline == 0)))
          with_memory(run);
      }
    }
  }

  void with_memory(TrainingRun run) {
    for (const plan::RunRecompute recompute : space_.recompute)
      for (const int zero : space_.zero)
        for (const bool sequence_parallel : space_.sequence_parallel) {
          // Without copies there is nothing to share, without cuts no norm to cut.
          if ((zero > 0 && run.data * run.context == 1) || (sequence_parallel && run.tensor == 1))
            continue;
          run.recompute = recompute;
          run.zero = zero;
          run.sequence_parallel = sequence_parallel;
          found_.push_back(run);
        }
  }

  const plan::Cluster& cluster_;
  const PlanSpace& space_;
  std::vector<TrainingRun> found_;
};

}  // namespace

std::vector<TrainingRun> candidates_of(const plan::Cluster& cluster, const PlanSpace& space) {
  return Enumeration(cluster, space).all();
}

}  // namespace pipewright::sim
