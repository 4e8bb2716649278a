#pragma once

// A request for a schedule by name, with all options of the generators.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/costs/schedule_costs.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

struct ScheduleDescriptor;

struct ScheduleRequest {
  std::string name;
  int ranks = 0;
  int microbatches = 0;
  int chunks = 0;  // stages per rank; 0: the schedule's minimum
  /// Microbatches of a round (megatron-interleaved; 0: P) or of an optimizer step (pipedream-2bw;
  /// 0: the smallest valid number)
  int group = 0;
  std::vector<int> rank_of_stage;   // a custom placement (gpipe, 1f1b, inference)
  ScheduleCosts costs;              // zb-auto, v-half, v-min and v-zb order their actions by them
  std::optional<int> memory_units;  // zb-auto, v-zb: a forward adds 2, I and W free 1 each
  /// A custom schedule, as in `ScheduleChoice`. If set, it is made whatever the name.
  std::shared_ptr<const ScheduleDescriptor> own{};
};

/// Returns the names that `make_schedule` accepts, in the order of the documentation.
const std::vector<std::string>& schedule_names();

/// Makes a schedule by name, in any case. Throws InputError that lists the names, or that states
/// the violated rule and the nearest valid sizes.
Schedule make_schedule(const ScheduleRequest& request);
Schedule make_schedule(const std::string& name, int ranks, int microbatches);

/// Makes the schedule as Pipewright trains it: with `oldest_weight_gradients_first`, except for
/// custom ones, which stay unchanged.
Schedule make_training_schedule(const ScheduleRequest& request);

/// Returns the Program of such a schedule: lowered or, for custom ones written with transfers or as
/// a Program, as written. Throws InputError that names rank and action if it is not valid, or if
/// the Program does not match the options.
Program lower(const ScheduleRequest& request, const Schedule& schedule,
              const LoweringOptions& options);

/// Returns the number of stages of the schedule. Throws InputError if it exceeds an int.
int stage_count(const ScheduleRequest& request);

/// Returns the number of microbatches of the schedule: the requested ones or, if ranks are replicas
/// (data-parallel), that number times the ranks. Throws InputError if it exceeds an int.
int microbatch_count(const ScheduleRequest& request);

/// Returns how the schedule's Program differs from one lowered with default options, such as
/// PipeDream's steps.
LoweringOptions lowering_of(const ScheduleRequest& request);

/// Returns "1f1b, 4 ranks, 8 microbatches" if the schedule equals a generator's action by action;
/// nothing otherwise. Generators that depend on times are tried with equal ones, and only for small
/// schedules.
std::optional<std::string> known_name(const Schedule& schedule);

}  // namespace pipewright::plan
