#include "pipewright/models/transformer/pipeline_shape.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/models/transformer/cut_schedule.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/schedules/placement_of.hpp"

namespace pipewright::models {
namespace {

using Counts = std::vector<int>;

bool is_within(const Counts& a, const Counts& b) {
  for (std::size_t at = 0; at < a.size(); ++at)
    if (a[at] > b[at])
      return false;
  return true;
}

void add_unless_within(std::vector<Counts>& all, const Counts& counts) {
  if (std::any_of(all.begin(), all.end(),
                  [&](const Counts& one) { return is_within(counts, one); }))
    return;
  std::erase_if(all, [&](const Counts& one) { return is_within(one, counts); });
  all.push_back(counts);
}

/// Returns a smaller number of microbatches with the same divisibility and the same memory per
/// rank.
int enough_microbatches(int ranks, int microbatches, int group) {
  const int round = group == 0 ? ranks : group;
  return std::min(microbatches, 4 * round + microbatches % round);
}

/// Megatron-LM interleaves stages in rounds of P microbatches unless a group size is given.
bool takes_whole_rounds(const plan::ScheduleDescriptor& schedule) {
  return schedule.runs_in_megatron && schedule.chunks == plan::Chunks::Any && !schedule.takes_group;
}

plan::Schedule short_schedule(const std::string& schedule, int ranks, int microbatches, int chunks,
                              int group) {
  if (takes_whole_rounds(cut_schedule(schedule)) && microbatches % ranks != 0)
    throw plan::InputError(fmt::format("{}: {} microbatches are not a multiple of {} ranks",
                                       schedule, microbatches, ranks));
  return make_schedule(schedule_request(
      schedule, ranks, enough_microbatches(ranks, microbatches, group), chunks, group));
}

std::vector<Counts> kept_by(const std::vector<plan::Action>& actions,
                            const std::vector<int>& stages) {
  std::vector<Counts> most;
  Counts now(2 * stages.size(), 0);
  for (const plan::Action& action : actions) {
    const auto found = std::lower_bound(stages.begin(), stages.end(), action.stage);
    const auto stage = static_cast<std::size_t>(found - stages.begin());
    int& whole = now[stage];
    int& owed = now[stages.size() + stage];
    if (action.kind == plan::ActionKind::Forward) {
      ++whole;
      add_unless_within(most, now);
    } else if (action.kind == plan::ActionKind::InputGradient) {
      --whole, ++owed;
    } else if (action.kind == plan::ActionKind::WeightGradient) {
      --owed;
    } else if (action.kind == plan::ActionKind::Backward) {
      --whole;
    }
  }
  return most;
}

PipelineShape shape_of(const plan::Schedule& schedule) {
  PipelineShape shape;
  const plan::Placement placement = placement_of(schedule);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    shape.stages_of_rank.push_back(placement.stages_on(static_cast<int>(rank)));
    shape.kept.push_back(kept_by(schedule.ranks[rank], shape.stages_of_rank.back()));
    for (const plan::Action& action : schedule.ranks[rank]) {
      shape.splits_backward |= action.kind == plan::ActionKind::WeightGradient;
      shape.fuses |= action.fused_with_next;
    }
  }
  return shape;
}

}  // namespace

const std::vector<std::string>& planned_schedules() {
  static const auto names = plan::schedule_names([](const plan::ScheduleDescriptor& schedule) {
    return schedule.planned != plan::Planned::No;
  });
  return names;
}

const std::vector<std::string>& usual_planned_schedules() {
  static const auto names = plan::schedule_names([](const plan::ScheduleDescriptor& schedule) {
    return schedule.planned == plan::Planned::ByDefault;
  });
  return names;
}

PipelineShape pipeline_shape(const std::string& schedule, int ranks, int microbatches, int chunks,
                             int group) {
  return shape_of(short_schedule(schedule, ranks, microbatches, chunks, group));
}

plan::Schedule shortened_schedule(const plan::Cut& cut, int batch) {
  // A rank with one stage reaches its peak within two rounds of microbatches.
  const int ranks = cut.pipeline, all = cut.microbatches(batch);
  const int shorter = cut.chunks == 1 ? std::min(all, 2 * ranks + all % ranks) : all;
  return short_schedule(schedule_name(cut), ranks, shorter, cut.chunks, cut.group);
}

PipelineShape pipeline_shape(const plan::Cut& cut, int batch) {
  return pipeline_shape(schedule_name(cut), cut.pipeline, cut.microbatches(batch), cut.chunks,
                        cut.group);
}

const PipelineShape* PipelineShapes::find(const plan::Cut& cut, int batch) {
  return find(schedule_name(cut), cut.pipeline, cut.microbatches(batch), cut.chunks, cut.group);
}

const PipelineShape* PipelineShapes::find(std::string_view schedule, int ranks, int microbatches,
                                          int chunks, int group) {
  const std::tuple key{std::string(schedule), ranks,
                       enough_microbatches(ranks, microbatches, group), chunks, group};
  const auto [at, is_new] = shapes_.try_emplace(key);
  if (is_new) {
    try {
      at->second = pipeline_shape(std::get<0>(key), ranks, microbatches, chunks, group);
    } catch (const plan::InputError&) {  // the schedule does not support the sizes
    }
  }
  return at->second ? &*at->second : nullptr;
}

}  // namespace pipewright::models
