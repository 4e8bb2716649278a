#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalogue.hpp"
#include "pipewright/plan/runs/stage_layers.hpp"
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

template <class Value>
bool is_one_of(const std::vector<Value>& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// Those asked for, else the divisors of `whole`.
std::vector<int> choices(const std::vector<int>& asked, int whole) {
  return asked.empty() ? divisors_of(whole) : asked;
}

/// All ways to cut the model, each part nested in the one before.
class Enumeration {
 public:
  Enumeration(const plan::Cluster& cluster, const PlanSpace& space, plan::PipelineShapes& shapes)
      : cluster_(cluster), space_(space), shapes_(shapes) {}

  std::vector<TrainingRun> all() {
    const int gpus = space_.model.gpus;
    TrainingRun run = space_.model;
    // Sums in every layer do not pay between nodes.
    for (const int tensor : choices(space_.tensor, std::min(gpus, cluster_.devices_per_node))) {
      run.tensor = tensor;
      if (gpus % tensor != 0 || run.heads % tensor != 0 || run.hidden % tensor != 0)
        continue;
      for (const int pipeline : choices(space_.pipeline, gpus / tensor)) {
        run.pipeline = pipeline;
        if (pipeline <= run.layers && gpus / tensor % pipeline == 0)
          with_pipeline(run);
      }
    }
    return std::move(found_);
  }

 private:
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
      for (const std::string& schedule : space_.schedules)
        with_schedule(run, schedule);
    }
  }

  void with_schedule(TrainingRun run, const std::string& schedule) {
    const bool is_1f1b = schedule == "1f1b";
    if (run.pipeline == 1 && !is_1f1b)
      return;
    run.schedule = is_1f1b || schedule == "interleaved-1f1b" ? "" : schedule;
    for (const int chunks : chunks_of(run, plan::find_schedule(schedule).chunks)) {
      run.chunks = chunks;
      if (shapes_.find(schedule, run.pipeline, run.microbatches(), chunks) != nullptr)
        with_stage_sizes(run);
    }
  }

  /// At most one layer is missing on a rank until all of its stages have as many.
  std::vector<int> chunks_of(const TrainingRun& run, plan::Chunks kind) const {
    const int most = run.layers / run.pipeline;
    std::vector<int> chunks;
    for (int count = 1; count <= most; ++count) {
      const bool is_kind = kind == plan::Chunks::One   ? count == 1
                           : kind == plan::Chunks::Two ? count == 2
                                                       : count > 1;
      const bool is_asked = space_.chunks.empty() || is_one_of(space_.chunks, count);
      const int stages = run.pipeline * count;
      const int missing = (stages - run.layers % stages) % stages;
      if (is_kind && is_asked && missing <= run.pipeline)
        chunks.push_back(count);
    }
    return chunks;
  }

  void with_stage_sizes(TrainingRun run) {
    const bool divides = run.layers % run.stages() == 0;
    for (const StageSizes sizes : space_.stage_sizes) {
      run.stage_layers.clear();
      if (sizes == StageSizes::Balanced) {
        run.stage_layers = balanced(run.stages());
        // Said once.
        const auto [least, most] =
            std::minmax_element(run.stage_layers.begin(), run.stage_layers.end());
        if (*least == *most && is_one_of(space_.stage_sizes, StageSizes::Equal))
          continue;
      } else if (!divides) {
        continue;
      }
      with_memory(run);
    }
  }

  /// A layer, the head and the embedding by their FLOPs.
  const std::vector<int>& balanced(int stages) {
    std::vector<int>& layers = balanced_[stages];
    if (layers.empty()) {
      const TrainingRun& model = space_.model;
      const double layer = (model_flops(model) / (1.0 * model.global_batch * model.sequence) -
                            6 * model.head_parameters()) /
                           model.layers;
      layers =
          plan::balanced_stage_layers(model.layers, stages, 0, 6 * model.head_parameters() / layer);
    }
    return layers;
  }

  void with_memory(TrainingRun run) {
    for (const plan::RunRecompute recompute : space_.recompute)
      for (const int zero : space_.zero)
        for (const bool sequence_parallel : space_.sequence_parallel) {
          // Without copies there is nothing to share, without cuts no norm to cut.
          if ((zero > 0 && run.data * run.context == 1) || (sequence_parallel && run.tensor == 1))
            continue;
          // What runs again runs before the input gradient, and the costs do not tell how much.
          if (recompute == plan::RunRecompute::Full && is_split(run))
            continue;
          run.recompute = recompute;
          run.zero = zero;
          run.sequence_parallel = sequence_parallel;
          found_.push_back(run);
        }
  }

  bool is_split(const TrainingRun& run) {
    return shapes_.find(run.schedule_name(), run.pipeline, run.microbatches(), run.chunks)
        ->splits_backward;
  }

  const plan::Cluster& cluster_;
  const PlanSpace& space_;
  plan::PipelineShapes& shapes_;
  std::map<int, std::vector<int>> balanced_;
  std::vector<TrainingRun> found_;
};

}  // namespace

std::vector<TrainingRun> candidates_of(const plan::Cluster& cluster, const PlanSpace& space,
                                       plan::PipelineShapes& shapes) {
  return Enumeration(cluster, space, shapes).all();
}

}  // namespace pipewright::sim
