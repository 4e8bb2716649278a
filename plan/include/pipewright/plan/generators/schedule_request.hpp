#pragma once

// A schedule asked for by name, with all that the generators can be told.

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
  int chunks = 0;                   // stages per rank; 0: as few as the schedule can have
  int group = 0;                    // microbatches of a round (megatron-interleaved; 0: P) or of an
                                    // optimizer step (pipedream-2bw; 0: the least that is legal)
  std::vector<int> rank_of_stage;   // a placement of the user's own (gpipe, 1f1b, inference)
  ScheduleCosts costs;              // zb-auto, v-half, v-min and v-zb order their actions by them
  std::optional<int> memory_units;  // zb-auto, v-zb: a forward adds 2, I and W free 1 each
  /// A schedule of one's own, as `ScheduleChoice` has it: then it is made, whatever the name.
  std::shared_ptr<const ScheduleDescriptor> own{};
};

/// The names that `make_schedule` knows, in the order of the documentation.
const std::vector<std::string>& schedule_names();

/// A generator by name, any case. Throws InputError that lists the names, or the rule that the
/// sizes break and the nearest ones that do not.
Schedule make_schedule(const ScheduleRequest& request);
Schedule make_schedule(const std::string& name, int ranks, int microbatches);

/// As Pipewright trains it: `oldest_weight_gradients_first`, but one's own as it is.
Schedule make_training_schedule(const ScheduleRequest& request);

/// The Program that such a schedule becomes: lowered, or, where somebody wrote it with transfers or
/// as a whole, as that says. Throws InputError when it is not sound, with rank and action, or when
/// it is another Program than is asked for.
Program lower(const ScheduleRequest& request, const Schedule& schedule,
              const LoweringOptions& options);

/// How many stages the schedule will have. Throws InputError for more than can be counted.
int stage_count(const ScheduleRequest& request);

/// How many microbatches the schedule will have: those that were asked for, of each rank where
/// ranks are replicas (data-parallel). Throws InputError for more than can be counted.
int microbatch_count(const ScheduleRequest& request);

/// How the schedule's Program differs from one lowered by default: PipeDream's steps.
LoweringOptions lowering_of(const ScheduleRequest& request);

/// "1f1b, 4 ranks, 8 microbatches" when it is action for action what a generator makes; nothing
/// otherwise. Generators that depend on times are tried with equal ones, and not for large
/// schedules.
std::optional<std::string> known_name(const Schedule& schedule);

}  // namespace pipewright::plan
