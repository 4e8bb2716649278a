#include "custom_program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "custom_schedule.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/lower/program_csv.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "pipewright/plan/program/validate_program.hpp"

namespace pipewright::plan {
namespace {

bool has(const std::vector<Instruction>& instructions, InstructionKind kind) {
  return std::any_of(instructions.begin(), instructions.end(),
                     [&](const Instruction& i) { return i.kind == kind; });
}

bool has(const Program& program, InstructionKind kind) {
  return std::any_of(program.ranks.begin(), program.ranks.end(),
                     [&](const auto& rank) { return has(rank, kind); });
}

/// Returns what is missing for the requested recomputation; empty if nothing is. Costs and memory
/// are predicted for that recomputation, so the Program must perform it. Under `full`, only a
/// Program without any R is rejected.
std::string missing_recompute(const Program& program, RecomputeMode wanted) {
  if (wanted != RecomputeMode::Full || is_forward_only(program) ||
      has(program, InstructionKind::Recompute))
    return "";
  return "recomputes nothing, but training.recompute is full: it needs an R before each "
         "backward (possible without: training.recompute none, selective)";
}

/// Returns true if every rank that holds a replica of the stage has an instruction that sums its
/// gradients.
bool sums(const Program& program, int stage) {
  const auto ranks = program.placement.ranks_of(stage);
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    const auto& list = program.ranks[static_cast<std::size_t>(rank)];
    return std::any_of(list.begin(), list.end(), [&](const Instruction& i) {
      return sums_copies(i.kind) && i.stage == stage;
    });
  });
}

/// Collects the fields in which a Program differs from what the scenario requests.
class Differences {
 public:
  Differences(const Program& program, const LoweringOptions& wanted, Diagnostics& diagnostics)
      : program_(program), wanted_(wanted), diagnostics_(diagnostics) {}

  void find() {
    compare("communicators", to_string(program_.communicators), to_string(wanted_.communicators));
    compare("transfers", to_string(program_.transfers), to_string(wanted_.transfers));
    compare("blocking", fmt::format("{}", program_.blocking), fmt::format("{}", wanted_.blocking));
    find_recompute();
    if (!is_forward_only(program_))
      find_collectives();
  }

 private:
  void compare(const std::string& field, const std::string& own, const std::string& wanted) {
    if (own != wanted)
      diagnostics_.add("/" + field, fmt::format("is {}, but pipeline.{} is {}: pipeline.{}={} fits",
                                                own, field, wanted, field, own));
  }

  void find_recompute() {
    const std::string mode = to_string(wanted_.recompute);
    if (const std::string missing = missing_recompute(program_, wanted_.recompute);
        !missing.empty())
      diagnostics_.add("/ranks", missing);
    const int layers = wanted_.recompute == RecomputeMode::Full ? wanted_.recompute_layers : 0;
    if (has(program_, InstructionKind::Recompute) && program_.recompute_layers != layers)
      diagnostics_.add(
          "/recompute_layers",
          fmt::format(
              "is {} and there is an R, but training.recompute is {}, which needs {} "
              "(1: training.recompute full; 0, an R recomputes its whole stage: none, selective)",
              program_.recompute_layers, mode, layers));
    const bool selective = wanted_.recompute == RecomputeMode::Selective;
    if (program_.selective_recompute != selective)
      diagnostics_.add("/selective_recompute",
                       fmt::format("is {}, but training.recompute is {}, which needs {}",
                                   program_.selective_recompute, mode, selective));
  }

  void find_collectives() {
    bool has_copies = false;
    for (int stage = 0; stage < stage_count(program_); ++stage) {
      const std::size_t own = program_.placement.ranks_of(stage).size();
      if (wanted_.replicas == 1 && own == 1)
        continue;
      has_copies = true;
      if (!sums(program_, stage))
        diagnostics_.add(
            "/ranks",
            fmt::format(
                "stage {} lies on {} ranks in each of {} pipelines (pipeline.replicas), but its "
                "gradients are not reduced over its replicas: each needs a {}REDUCE_GRAD",
                stage, own, wanted_.replicas, stage));
    }
    const int zero = has_copies ? wanted_.zero : 0;
    check_divided(InstructionKind::GatherParameters, zero == 1 || zero == 2,
                  "the optimizer's state is", has_copies);
    check_divided(InstructionKind::ScatterMicrobatch, zero >= 2, "gradients are", has_copies);
    check_divided(InstructionKind::Unshard, zero == 3, "parameters are", has_copies);
    if (wanted_.gradient_norm && !has(program_, InstructionKind::NormGradients))
      diagnostics_.add("/ranks",
                       "has no NORM, which gradients that are clipped (training.clip_norm) or "
                       "scaled (training.loss_scale, mixed-fp16) need");
    if (wanted_.tied_stages.size() > 1 && !has(program_, InstructionKind::ReduceTied))
      diagnostics_.add("/ranks", fmt::format("has no REDUCE_TIED, but stages {} share a weight",
                                             fmt::join(wanted_.tied_stages, ", ")));
  }

  /// Checks that the Program has this instruction exactly if the replicas partition and gather that
  /// state.
  void check_divided(InstructionKind kind, bool divided, const char* what, bool has_copies) {
    if (has_copies && has(program_, kind) != divided)
      diagnostics_.add("/ranks", fmt::format("has {}{}, but {} {}divided (training.zero)",
                                             divided ? "no " : "a ", traits_of(kind).word, what,
                                             divided ? "" : "not "));
  }

  const Program& program_;
  const LoweringOptions& wanted_;
  Diagnostics& diagnostics_;
};

/// Throws the differences. Without a file, a stand-in document provides the positions.
void require_fits(const Program& program, const std::string& name, const LoweringOptions& wanted,
                  const std::shared_ptr<const JsonDocument>& document) {
  const auto find = [&](const JsonDocument& in) {
    Diagnostics diagnostics(in);
    Differences(program, wanted, diagnostics).find();
    diagnostics.throw_if_any();
  };
  if (document)
    find(*document);
  else
    find(JsonDocument::parse(to_json(program).dump(2), name));
}

ScheduleDescriptor with_sizes_of(const Program& program, std::string name) {
  ScheduleDescriptor own = custom_schedule(schedule_of(program), std::move(name));
  if (program.step_every > 0)
    own.step_every = [every = program.step_every](const ScheduleRequest&) { return every; };
  return own;
}

}  // namespace

void require_runnable(const Program& program) {
  require_runnable(schedule_of(program));
  validate(program, CommunicatorLayout::Edge, TransferMode::Eager);
}

ScheduleDescriptor custom_program(Program program, std::string name,
                                  std::shared_ptr<const JsonDocument> document) {
  ScheduleDescriptor own = with_sizes_of(program, name);
  own.program = std::make_shared<const Program>(std::move(program));
  own.lower = [name = std::move(name), whole = own.program,
               document = std::move(document)](const LoweringOptions& options) {
    require_fits(*whole, name, options, document);
    return *whole;
  };
  return own;
}

ScheduleDescriptor own_transfers(Program program, std::string name) {
  ScheduleDescriptor own = with_sizes_of(program, name);
  own.lower = [name = std::move(name),
               program = std::move(program)](const LoweringOptions& wanted) {
    if (const std::string missing = missing_recompute(program, wanted.recompute); !missing.empty())
      throw InputError(fmt::format("{}: {}", name, missing));
    return with_transfers_of(program, wanted);
  };
  return own;
}

}  // namespace pipewright::plan
