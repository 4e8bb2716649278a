#pragma once

// All schedules, each as it declares itself at the end of its file in src/generators. The help, the
// tables of the documentation, the scenario's schema, the remedies against a memory cap, the
// planner, the files of other trainers and the tests of closed forms read them here. Nobody else
// compares names. A program declares one of its own in the same way (`ScheduleChoice`), and so is
// declared what somebody wrote into a file.

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

/// How many stages a rank can have.
enum class Chunks { One, Two, Even, Any };

/// Numbers of stages per rank that are worth a try: those it must have, else two and four. One
/// alone makes an interleaved schedule its plain one.
const std::vector<int>& usual_chunks(Chunks chunks);

/// P, M and V, and the times of one microbatch on all the stages of a rank, in any one unit. Stages
/// are equal and transfers take no time.
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

/// What a paper says of a schedule. F, I, W and B = I + W are times per rank, F&B that of a fused
/// pair, here F + B.
struct ClosedForm {
  std::string words;
  /// Nothing for sizes and times for which the paper does not claim it; empty where it gives no
  /// exact figure.
  std::function<std::optional<double>(const ScheduleSizes&)> value{};
  bool is_limit = false;  // the figure is at most this
};

/// A schedule, and what its generator found out beside it.
struct MadeSchedule {
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

/// A schedule under a limit of its memory that has a name of its own: ZB-2p is zb-auto where a rank
/// holds at most what 2 P microbatches keep.
struct NamedLimit {
  std::string name;
  int microbatches = 0;  // that a rank may hold, in multiples of P

  /// Returns the limit in units of `ScheduleRequest::memory_units`: a forward adds 2.
  int memory_units(int ranks) const { return 2 * microbatches * ranks; }
};

struct ScheduleDescriptor {
  std::string name;
  /// Names in papers, in other toolkits and in tables of measured runs, where letters and digits
  /// alone count (`bare_name`).
  std::vector<std::string> aliases{};
  std::string torch_class{};      // in torch.distributed.pipelining: "Interleaved1F1B"; empty: none
  bool runs_in_megatron = false;  // Megatron-LM trains in this order
  bool runs_in_deepspeed = false;  // DeepSpeed's pipeline engine does
  Planned planned = Planned::No;   // other than No: one direction, one optimizer step, no search
  Chunks chunks = Chunks::One;
  std::string takes{};       // which sizes and options, in words; empty: any sizes
  bool takes_group = false;  // --group-size
  bool takes_memory_units = false;
  bool orders_by_times = false;  // searches: seconds for large sizes
  bool is_forward_only = false;
  bool is_data_parallel = false;       // each rank has the whole model, and microbatches of its own
  bool is_instruction_stream = false;  // DeepSpeed's, with loads, transfers and steps in its order
  /// Each rank steps when it is done, and validates the norm of the gradients afterwards (Zero
  /// Bubble, section 4): an iteration takes as long as the longest span of a rank.
  bool steps_by_rank = false;
  std::vector<NamedLimit> named_limits{};
  /// Sizes fit `chunks`; the rest is checked here, as `make_schedule` says.
  std::function<MadeSchedule(const ScheduleRequest& request)> make{};
  /// Set if the user can choose the rank of each stage.
  std::function<Schedule(const std::vector<int>& rank_of_stage, int microbatches)>
      make_on_placement{};
  /// Set if each stage can have its own number of copies.
  std::function<Schedule(const std::vector<int>& copies, int microbatches)> make_with_copies{};
  /// Backwards of a stage between two optimizer steps, where there is no flush.
  std::function<int(const ScheduleRequest& request)> step_every{};
  /// The iteration, or the longest span of a rank, less the work of a rank.
  ClosedForm bubble{};
  bool bubble_is_of_span = false;
  /// Most microbatches that a rank keeps, of all its stages.
  ClosedForm activations{};

  // Of one's own alone.
  std::optional<FixedSizes> only{};  // none: `make` takes those that are asked for
  /// How it becomes a Program, where that has more than its actions say; else by `plan::lower`.
  /// Throws InputError where it is another Program than is asked for.
  std::function<Program(const LoweringOptions& options)> lower{};
  std::shared_ptr<const Program> program{};  // which is run as it stands
  std::string text{};                        // of its file

  bool takes_placement() const { return make_on_placement != nullptr; }
  bool takes_copies() const { return make_with_copies != nullptr; }
  /// Whether it trains the batch that is asked for, with one step at its end.
  bool trains_batch() const {
    return !is_forward_only && !is_data_parallel && step_every == nullptr;
  }
};

/// In the order of the documentation.
const std::vector<ScheduleDescriptor>& schedules();

/// By name, any case. Throws InputError that lists the names.
const ScheduleDescriptor& find_schedule(const std::string& name);
/// That of one's own, which lives as long as who asks for it; else by name.
const ScheduleDescriptor& descriptor_of(const ScheduleChoice& schedule);
const ScheduleDescriptor& descriptor_of(const ScheduleRequest& request);

/// Megatron-LM's schedule of so many stages per rank, in rounds of `group` microbatches (0: of one
/// a rank), which is run where none is named.
const ScheduleDescriptor& default_schedule(int chunks = 1, int group = 0);
/// The cut's, or the default for its chunks and group.
const std::string& schedule_name(const Cut& cut);

/// As `make_schedule`, with what was found out beside the schedule.
MadeSchedule make_with_findings(const ScheduleRequest& request);

/// The names of those for which `is_one` holds.
std::vector<std::string> schedule_names(
    const std::function<bool(const ScheduleDescriptor&)>& is_one);
/// Returns the names as a phrase: "gpipe, 1f1b or inference".
std::string listed_schedules(const std::function<bool(const ScheduleDescriptor&)>& is_one);

}  // namespace pipewright::plan
