#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "custom_schedule.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/schedules/backward_passes.hpp"

namespace pipewright::plan {
namespace {

int least_chunks(Chunks chunks) { return chunks == Chunks::Two || chunks == Chunks::Even ? 2 : 1; }

void check_chunks(const ScheduleDescriptor& entry, int chunks) {
  const auto refuse = [&](const std::string& rule) {
    throw InputError(
        fmt::format("{}: {} chunks per rank asked for, but {}", entry.name, chunks, rule));
  };
  if (chunks < 1)
    refuse(fmt::format("the least is {}", least_chunks(entry.chunks)));
  if (entry.chunks == Chunks::One && chunks != 1)
    refuse(fmt::format("it has 1; these take more: {}",
                       listed_schedules([](const ScheduleDescriptor& other) {
                         return other.chunks == Chunks::Any;
                       })));
  if (entry.chunks == Chunks::Two && chunks != 2)
    refuse("it has 2, in a V");
  if (entry.chunks == Chunks::Even && chunks % 2 != 0)
    refuse(fmt::format("every wave has 2: {}",
                       chunks == 1 ? "2" : fmt::format("{} or {}", chunks - 1, chunks + 1)));
}

int stage_count_by_chunks(const ScheduleDescriptor& entry, const ScheduleRequest& request) {
  const int chunks = request.chunks == 0 ? least_chunks(entry.chunks) : request.chunks;
  const std::int64_t stages = std::int64_t{request.ranks} * chunks;
  if (stages > std::numeric_limits<int>::max())
    throw InputError(fmt::format("{} ranks with {} stages each are more stages than can be counted",
                                 request.ranks, chunks));
  return static_cast<int>(stages);
}

void check_options(const ScheduleDescriptor& entry, const ScheduleRequest& request) {
  if (request.group != 0 && !entry.takes_group)
    throw InputError(fmt::format(
        "{}: has no group size; these have one: {}", entry.name,
        listed_schedules([](const ScheduleDescriptor& other) { return other.takes_group; })));
  if (!request.rank_of_stage.empty() && request.own)
    throw InputError(fmt::format("{}: defines the rank of each stage itself", entry.name));
  if (request.memory_units && !entry.takes_memory_units)
    throw InputError(fmt::format("{}: takes no memory limit; these do: {}", entry.name,
                                 listed_schedules([](const ScheduleDescriptor& other) {
                                   return other.takes_memory_units;
                                 })));
}

std::string sizes_in_words(std::size_t ranks, int microbatches, int stages) {
  return fmt::format("{} ranks, {} microbatches and {} stages", ranks, microbatches, stages);
}

/// Checks the sizes of a custom schedule, which are unknown until it is made.
void check_made(const ScheduleDescriptor& own, const Schedule& made,
                const ScheduleRequest& request) {
  // A file has fixed sizes, which are rarely a multiple of its chunks.
  const bool has_all_stages = own.only && request.chunks == 0;
  const int stages = has_all_stages ? own.only->stages : stage_count_by_chunks(own, request);
  if (static_cast<int>(made.ranks.size()) != request.ranks ||
      made.microbatches != request.microbatches || stage_count(made) != stages)
    throw InputError(fmt::format(
        "{} is for {}, but {} are asked for", own.name,
        sizes_in_words(made.ranks.size(), made.microbatches, stage_count(made)),
        sizes_in_words(static_cast<std::size_t>(request.ranks), request.microbatches, stages)));
}

}  // namespace

GeneratedSchedule make_with_findings(const ScheduleRequest& request) {
  const ScheduleDescriptor& entry = descriptor_of(request);
  check_options(entry, request);
  if (!request.rank_of_stage.empty())
    return {make_on_placement(entry.name, request.rank_of_stage, request.microbatches)};
  ScheduleRequest whole = request;
  if (whole.chunks == 0)
    whole.chunks = least_chunks(entry.chunks);
  if (!entry.only)
    check_chunks(entry, whole.chunks);
  GeneratedSchedule made = entry.make(whole);
  if (request.own)
    check_made(entry, made.schedule, request);
  return made;
}

Schedule make_schedule(const ScheduleRequest& request) {
  return make_with_findings(request).schedule;
}

Schedule make_schedule(const std::string& name, int ranks, int microbatches) {
  ScheduleRequest request;
  request.name = name;
  request.ranks = ranks;
  request.microbatches = microbatches;
  return make_schedule(request);
}

Schedule make_training_schedule(const ScheduleRequest& request) {
  Schedule made = make_schedule(request);
  return request.own ? made : oldest_weight_gradients_first(std::move(made));
}

Program lower(const ScheduleRequest& request, const Schedule& schedule,
              const LoweringOptions& options) {
  if (!request.own)
    return lower(schedule, options);
  if (request.own->lower)
    return request.own->lower(options);
  require_sound(request.own->name, [&] { require_runnable(schedule); });
  return lower(schedule, options);
}

int stage_count(const ScheduleRequest& request) {
  const ScheduleDescriptor& entry = descriptor_of(request);
  if (!request.rank_of_stage.empty())
    return static_cast<int>(request.rank_of_stage.size());
  if (entry.only)
    return entry.only->stages;
  return entry.is_data_parallel ? 1 : stage_count_by_chunks(entry, request);
}

int microbatch_count(const ScheduleRequest& request) {
  if (!descriptor_of(request).is_data_parallel)
    return request.microbatches;
  const std::int64_t microbatches = std::int64_t{request.microbatches} * request.ranks;
  if (microbatches > std::numeric_limits<int>::max())
    throw InputError(
        fmt::format("{} ranks with {} microbatches each are more microbatches than can be counted",
                    request.ranks, request.microbatches));
  return static_cast<int>(microbatches);
}

LoweringOptions lowering_of(const ScheduleRequest& request) {
  LoweringOptions options;
  if (request.name.empty() && !request.own)
    return options;
  const ScheduleDescriptor& entry = descriptor_of(request);
  if (entry.step_every)
    options.step_every = entry.step_every(request);
  if (entry.program) {
    options.communicators = entry.program->communicators;
    options.transfers = entry.program->transfers;
    options.blocking = entry.program->blocking;
  }
  return options;
}

std::optional<std::string> known_name(const Schedule& schedule) {
  constexpr int most_to_search = 4096;
  const auto ranks = static_cast<int>(schedule.ranks.size());
  if (ranks == 0)
    return {};
  const int stages = stage_count(schedule);
  for (const ScheduleDescriptor& entry : schedules()) {
    if (entry.orders_by_times && stages * schedule.microbatches > most_to_search)
      continue;
    ScheduleRequest request;
    request.name = entry.name;
    request.ranks = ranks;
    request.microbatches = schedule.microbatches / (entry.is_data_parallel ? ranks : 1);
    request.chunks = entry.is_data_parallel ? 1 : std::max(1, stages / ranks);
    try {
      if (make_schedule(request) != schedule)
        continue;
    } catch (const InputError&) {
      continue;  // this schedule does not support the sizes
    }
    const std::string chunks =
        request.chunks > 1 ? fmt::format(", {} chunks per rank", request.chunks) : "";
    return fmt::format("{}, {} ranks, {} microbatches{}", entry.name, ranks, request.microbatches,
                       chunks);
  }
  return {};
}

}  // namespace pipewright::plan
