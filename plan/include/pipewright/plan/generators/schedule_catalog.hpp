#pragma once

// The catalog of schedules, each declared at the end of its file in src/generators. The help, the
// tables of the documentation, the scenario's schema, the remedies for exceeded memory, the
// planner, the files of other trainers and the tests of closed forms all use it, and no other code
// compares names. A program declares a custom schedule in the same way (`ScheduleChoice`), and so
// are schedules that users write into files.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/generators/deepspeed.hpp"
#include "pipewright/plan/generators/schedule_choice.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

/// Numbers of stages that a rank can have.
enum class Chunks { One, Two, Even, Any };

/// Returns the numbers of stages per rank worth trying: the required number, or else two and four.
/// With one stage, an interleaved schedule becomes its plain version.
const std::vector<int>& usual_chunks(Chunks chunks);

/// P, M and V, and the times of one microbatch on all the stages of a rank, in any unit. Stages are
/// assumed equal, and transfers free.
struct ScheduleSizes {
  int ranks = 0;
  int microbatches = 0;
  int chunks = 1;
  double forward = 1;
  double input_gradient = 1;
  double weight_gradient = 1;

  double backward() const { return input_gradient + weight_gradient; }
  bool equal_times() const {
    return forward == input_gradient && input_gradient == weight_gradient;
  }
};

/// A closed-form result that a paper states for a schedule. F, I, W and B = I + W are times per
/// rank; F&B is that of a fused pair, here F + B.
struct ClosedForm {
  std::string words;
  /// Returns nothing for sizes and times that the paper does not cover; unset if it gives no exact
  /// figure.
  std::function<std::optional<double>(const ScheduleSizes&)> value{};
  bool is_limit = false;  // the figure is at most this
};

/// A schedule, with further results of its generator.
struct GeneratedSchedule {
  struct Bound {
    Seconds longest_span;  // the longest that a rank takes from its first start to its last end
    Seconds lower_bound;   // no order that keeps the microbatches in order has a shorter one
  };
  Schedule schedule;
  std::optional<Bound> bound{};
  std::optional<DeepSpeedStream> stream{};
};

/// Sizes of a schedule that has no others.
struct FixedSizes {
  int ranks = 0;
  int microbatches = 0;
  int stages = 0;
};

/// The planner never tries a schedule, tries it if it is named, or tries it by default.
enum class Planned { No, OnRequest, ByDefault };

/// A memory-limited schedule with its own name: ZB-2p is zb-auto where a rank holds at most what 2
/// P microbatches save.
struct NamedLimit {
  std::string name;
  int microbatches = 0;  // limit of a rank, in multiples of P

  /// Returns the limit in units of `ScheduleRequest::memory_units`: a forward adds 2.
  int memory_units(int ranks) const { return 2 * microbatches * ranks; }
};

/// The declared properties and functions of a schedule.
struct ScheduleDescriptor {
  std::string name;
  /// Names in papers, in other toolkits and in tables of measured runs. Only letters and digits are
  /// compared (`bare_name`).
  std::vector<std::string> aliases{};
  std::string torch_class{};      // in torch.distributed.pipelining: "Interleaved1F1B"; empty: none
  bool runs_in_megatron = false;  // Megatron-LM trains in this order
  bool runs_in_deepspeed = false;  // DeepSpeed's pipeline engine trains in this order
  Planned planned = Planned::No;   // other than No: one direction, one optimizer step, no search
  Chunks chunks = Chunks::One;
  std::string takes{};       // required sizes and options, as text; empty: any sizes
  bool takes_group = false;  // has --group-size
  bool takes_memory_units = false;
  bool orders_by_times = false;  // searches for an order; takes seconds for large sizes
  bool is_forward_only = false;
  bool is_data_parallel = false;       // each rank has the whole model and its own microbatches
  bool is_instruction_stream = false;  // DeepSpeed's order of loads, transfers and steps
  /// Each rank steps when it is done, and validates the norm of the gradients afterwards (Zero
  /// Bubble, section 4), so an iteration takes as long as the longest span of a rank.
  bool steps_by_rank = false;
  std::vector<NamedLimit> named_limits{};
  /// Makes the schedule. The sizes already fit `chunks`; other checks are made here, as
  /// `make_schedule` says.
  std::function<GeneratedSchedule(const ScheduleRequest& request)> make{};
  /// Set if the user can choose the rank of each stage.
  std::function<Schedule(const std::vector<int>& rank_of_stage, int microbatches)>
      make_on_placement{};
  /// Set if each stage can have its own number of copies.
  std::function<Schedule(const std::vector<int>& copies, int microbatches)> make_with_copies{};
  /// Returns the number of backwards of a stage between two optimizer steps; set if there is no
  /// flush.
  std::function<int(const ScheduleRequest& request)> step_every{};
  /// The iteration time, or the longest span of a rank, less the work of a rank.
  ClosedForm bubble{};
  bool bubble_is_of_span = false;
  /// Most activations that a rank keeps, over all of its stages.
  ClosedForm activations{};

  // For custom schedules only.
  std::optional<FixedSizes> only{};  // the only sizes that `make` has; absent: any
  /// Returns the Program, if it contains more than the actions say; unset: `plan::lower` makes it.
  /// Throws InputError if the result does not match the options.
  std::function<Program(const LoweringOptions& options)> lower{};
  std::shared_ptr<const Program> program{};  // run unchanged
  std::string text{};                        // content of its file

  bool takes_placement() const { return make_on_placement != nullptr; }
  bool takes_copies() const { return make_with_copies != nullptr; }
  /// Returns true if it trains the requested batch with one optimizer step at its end.
  bool trains_batch() const {
    return !is_forward_only && !is_data_parallel && step_every == nullptr;
  }
};

/// Returns all schedules, in the order of the documentation.
const std::vector<ScheduleDescriptor>& schedules();

/// Finds a schedule by name, in any case. Throws InputError that lists the names.
const ScheduleDescriptor& find_schedule(const std::string& name);
/// Returns a custom schedule's own descriptor, which lives as long as the argument, or else finds
/// it by name.
const ScheduleDescriptor& descriptor_of(const ScheduleChoice& schedule);
const ScheduleDescriptor& descriptor_of(const ScheduleRequest& request);

/// Returns Megatron-LM's schedule for `chunks` stages per rank, in rounds of `group` microbatches
/// (0: one per rank), which is the default if no schedule is named.
const ScheduleDescriptor& default_schedule(int chunks = 1, int group = 0);
/// Returns the Cut's schedule, or the default for its chunks and group.
const std::string& schedule_name(const Cut& cut);

/// Makes a schedule like `make_schedule`, and also returns the generator's further results.
GeneratedSchedule make_with_findings(const ScheduleRequest& request);

/// Returns the names of the schedules for which `is_one` returns true.
std::vector<std::string> schedule_names(
    const std::function<bool(const ScheduleDescriptor&)>& is_one);
/// Returns the names as a phrase: "gpipe, 1f1b or inference".
std::string listed_schedules(const std::function<bool(const ScheduleDescriptor&)>& is_one);

}  // namespace pipewright::plan
