#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "pipewright/models/allocator/device_memory.hpp"
#include "pipewright/models/transformer/stage_layers.hpp"
#include "pipewright/models/transformer/transformer_costs.hpp"
#include "pipewright/models/transformer/transformer_counts.hpp"
#include "pipewright/models/transformer/transformer_memory.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/search/planner/plan_search.hpp"
#include "pipewright/search/planner/uneven_ranks.hpp"

namespace pipewright::search {
namespace {

using plan::Cut;

/// Returns the divisors in ascending order.
std::vector<int> divisors_of(int whole) {
  std::vector<int> small, large;
  for (int divisor = 1; divisor <= whole / divisor; ++divisor)
    if (whole % divisor == 0) {
      small.push_back(divisor);
      if (whole / divisor != divisor)
        large.push_back(whole / divisor);
    }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

template <class Value>
bool is_one_of(const std::vector<Value>& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// Returns the requested values, or else the divisors of `whole`.
std::vector<int> choices(const std::vector<int>& asked, int whole) {
  return asked.empty() ? divisors_of(whole) : asked;
}

/// Fractions of a rank's memory to fill with layers. The memory count here is approximate, so
/// several are tried.
constexpr double shares_to_fill[] = {1.1, 1, 0.95};

/// Enumerates all cuts of the training, with nested choices.
class Enumeration {
 public:
  Enumeration(const plan::Cluster& cluster, const PlanSpace& space, models::PipelineShapes& shapes)
      : cluster_(cluster),
        space_(with_defaults(space)),
        training_(space_.training),
        model_(space_.training.model),
        shapes_(shapes),
        machine_(models::machine_of(cluster)),
        is_uneven_(has_uneven_ranks(cluster)) {}

  std::vector<Cut> all() {
    const int gpus = space_.gpus;
    Cut cut;
    // Tensor-parallel all-reduces in every layer do not pay off between nodes.
    for (const int tensor : choices(space_.tensor, std::min(gpus, cluster_.devices_per_node))) {
      cut.tensor = tensor;
      if (gpus % tensor != 0 || model_.heads % tensor != 0 || model_.hidden % tensor != 0)
        continue;
      for (const int pipeline : choices(space_.pipeline, gpus / tensor)) {
        cut.pipeline = pipeline;
        if (pipeline <= model_.layers && gpus / tensor % pipeline == 0 && has_ranks(pipeline))
          with_pipeline(cut);
      }
    }
    return std::move(found_);
  }

 private:
  /// Returns true if the cluster's speeds and memory by rank, if any, are for this pipeline size.
  bool has_ranks(int pipeline) const {
    const auto fits = [&](const std::vector<double>& by_rank) {
      return by_rank.empty() || by_rank.size() == static_cast<std::size_t>(pipeline);
    };
    return fits(cluster_.rank_speeds) && fits(cluster_.rank_memory);
  }

  void with_pipeline(Cut cut) {
    const int others = space_.gpus / cut.tensor / cut.pipeline;
    for (const int context : choices(space_.context, others)) {
      cut.context = context;
      cut.data = others / std::max(1, context);
      if (others % context != 0 || training_.sequence % context != 0 ||
          training_.batch % cut.data != 0)
        continue;
      const bool has_mixture = model_.has_mixture();
      for (const int expert : has_mixture ? choices(space_.expert, others) : std::vector{1}) {
        cut.expert = expert;
        if (is_uneven_)
          devices_ = rank_devices(cluster_, cut);
        if (others % expert == 0 && (!has_mixture || model_.experts % expert == 0))
          with_microbatch(cut);
      }
    }
  }

  void with_microbatch(Cut cut) {
    const int of_pipeline = training_.batch / cut.data;
    for (const int microbatch : choices(space_.microbatch, of_pipeline)) {
      cut.microbatch = microbatch;
      if (of_pipeline % microbatch != 0)
        continue;
      for (const std::string& schedule : space_.schedules)
        with_schedule(cut, schedule);
    }
  }

  void with_schedule(Cut cut, const std::string& schedule) {
    if (cut.pipeline == 1 && schedule != plan::default_schedule().name)
      return;
    for (const int chunks : chunks_of(cut, plan::find_schedule(schedule).chunks)) {
      cut.chunks = chunks;
      cut.schedule = schedule == plan::default_schedule(chunks).name ? "" : schedule;
      if (shapes_.find(cut, training_.batch) != nullptr)
        with_stage_sizes(cut);
    }
  }

  /// Returns the numbers of chunks. Each rank may lack at most one layer for equal stages.
  std::vector<int> chunks_of(const Cut& cut, plan::Chunks kind) const {
    const int most = model_.layers / cut.pipeline;
    std::vector<int> chunks;
    for (int count = 1; count <= most; ++count) {
      const bool is_kind = kind == plan::Chunks::One   ? count == 1
                           : kind == plan::Chunks::Two ? count == 2
                                                       : count > 1;
      const bool is_asked = space_.chunks.empty() || is_one_of(space_.chunks, count);
      const int stages = cut.pipeline * count;
      const int missing = (stages - model_.layers % stages) % stages;
      if (is_kind && is_asked && missing <= cut.pipeline)
        chunks.push_back(count);
    }
    return chunks;
  }

  void with_stage_sizes(Cut cut) {
    const bool divides = model_.layers % cut.stages() == 0;
    for (const StageSizes sizes : space_.stage_sizes) {
      cut.stage_layers.clear();
      if (sizes == StageSizes::Balanced && is_uneven_) {
        with_uneven_stages(cut);
        continue;
      }
      if (sizes == StageSizes::Balanced) {
        cut.stage_layers = balanced(cut.stages());
        // Adds equal stages only once.
        const auto [least, most] =
            std::minmax_element(cut.stage_layers.begin(), cut.stage_layers.end());
        if (*least == *most && is_one_of(space_.stage_sizes, StageSizes::Equal))
          continue;
      } else if (!divides) {
        continue;
      }
      with_memory(cut);
    }
  }

  const std::vector<int>& balanced(int stages) {
    std::vector<int>& layers = balanced_[stages];
    if (layers.empty())
      layers = models::balanced_stage_layers(model_.layers, stages, 0, head_in_layers());
    return layers;
  }

  /// Returns the head's FLOPs in units of a layer's.
  double head_in_layers() const {
    const double head = 6 * models::head_parameters(model_);
    const double token =
        models::training_flops(training_) / (1.0 * training_.batch * training_.sequence);
    return head / ((token - head) / model_.layers);
  }

  /// Gives faster ranks more layers; and again so that no rank exceeds its memory, if that is
  /// another cut.
  void with_uneven_stages(Cut cut) {
    const models::PipelineShape& shape = *shapes_.find(cut, training_.batch);
    const auto by_speed = dealt_layers({model_.layers, head_in_layers()}, shape, devices_.speeds);
    cut.stage_layers = *by_speed;
    const std::size_t first = found_.size();
    with_memory(cut);
    const std::size_t end = found_.size();
    for (std::size_t at = first; at < end; ++at)
      for (Cut fitted = found_[at]; const double share : shares_to_fill) {
        const auto leaner = within_memory(fitted, shape, share);
        if (!leaner)
          continue;
        fitted.stage_layers = *leaner;
        found_.push_back(fitted);
      }
  }

  /// Returns layers distributed by speed such that they fit in this fraction of the ranks' memory;
  /// nothing if the current layers fit, or none do.
  std::optional<std::vector<int>> within_memory(Cut cut, const models::PipelineShape& shape,
                                                double share) const {
    AssignedLayers dealt{model_.layers, head_in_layers(), {}};
    dealt.most_of_rank.assign(shape.stages_of_rank.size(), model_.layers);
    const auto beside = static_cast<double>(models::gpu_memory({}, cut, {}).total().value);
    for (bool is_first = true;; is_first = false) {
      const auto ranks = models::transformer_memory(training_, cut, shape);
      bool fits = true;
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const double memory = share * static_cast<double>(devices_.memory[rank].value);
        const double tensors = ranks[rank].standing + ranks[rank].kept +
                               models::bytes_at_peak(ranks[rank], machine_.constants);
        if (memory <= 0 || tensors + beside <= memory)
          continue;
        fits = false;
        int layers = 0;
        for (const int stage : shape.stages_of_rank[rank])
          layers += cut.layers_of(stage, model_.layers);
        dealt.most_of_rank[rank] = layers - 1;
      }
      if (fits)
        return is_first ? std::nullopt : std::optional(cut.stage_layers);
      const auto leaner = dealt_layers(dealt, shape, devices_.speeds);
      if (!leaner)
        return {};
      cut.stage_layers = *leaner;
    }
  }

  void with_memory(Cut cut) {
    cut.overlaps_gradients = space_.overlaps_gradients;
    for (const plan::RecomputeMode recompute : space_.recompute)
      for (const int zero : space_.zero)
        for (const bool sequence_parallel : sequence_parallel_of(cut)) {
          // Without replicas there is nothing to shard.
          if (zero > 0 && cut.data * cut.context == 1)
            continue;
          // Full recomputation runs before the input gradient, and the costs do not say how long it
          // takes.
          if (recompute == plan::RecomputeMode::Full && is_split(cut))
            continue;
          cut.recompute = recompute;
          cut.zero = zero;
          cut.sequence_parallel = sequence_parallel;
          found_.push_back(cut);
        }
  }

  /// Returns the choices of sequence parallelism. Without tensor parallelism there is no norm to
  /// partition.
  std::vector<bool> sequence_parallel_of(const Cut& cut) const {
    return cut.tensor == 1 ? std::vector<bool>{false} : space_.sequence_parallel;
  }

  bool is_split(const Cut& cut) { return shapes_.find(cut, training_.batch)->splits_backward; }

  const plan::Cluster& cluster_;
  const PlanSpace space_;
  const plan::TransformerTraining& training_;
  const plan::TransformerConfig& model_;
  models::PipelineShapes& shapes_;
  const plan::Machine machine_;
  const bool is_uneven_;
  RankDevices devices_;  // of the current cut, if they are uneven
  std::map<int, std::vector<int>> balanced_;
  std::vector<Cut> found_;
};

}  // namespace

PlanSpace with_defaults(PlanSpace space) {
  using R = plan::RecomputeMode;
  space.context = asked_or(space.context, {1});
  space.recompute = asked_or(space.recompute, {R::None, R::Selective, R::Full});
  space.zero = asked_or(space.zero, {0, 1, 2, 3});
  space.schedules = asked_or(space.schedules, models::usual_planned_schedules());
  space.stage_sizes = asked_or(space.stage_sizes, {StageSizes::Equal, StageSizes::Balanced});
  space.sequence_parallel = asked_or(space.sequence_parallel, {false, true});
  return space;
}

std::vector<Cut> candidates_of(const plan::Cluster& cluster, const PlanSpace& space,
                               models::PipelineShapes& shapes) {
  return Enumeration(cluster, space, shapes).all();
}

}  // namespace pipewright::search
