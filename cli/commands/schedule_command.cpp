#include <filesystem>

#include "commands/commands.hpp"
#include "exit_code.hpp"
#include "options/schedule_costs.hpp"
#include "pipewright/draw/svg.hpp"
#include "pipewright/draw/timeline.hpp"
#include "pipewright/loop/predict/schedule_figures.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/lower/program_csv.hpp"
#include "pipewright/plan/schedules/backward_passes.hpp"
#include "pipewright/trace/files/schedule_file.hpp"
#include "print/check_report.hpp"
#include "print/console.hpp"
#include "print/plan_table.hpp"
#include "print/schedule_table.hpp"

namespace pipewright::cli {
namespace {

struct ScheduleOptions {
  plan::ScheduleRequest request;
  std::vector<int> copies;
  std::string placement;
  std::string costs;
  std::string check;
  std::string communicators = "edge";
  std::string transfers = "eager";
  bool early_receives = false;
  bool split = false;
  bool merge = false;
  bool recompute = false;
  int replicas = 1;
  std::vector<int> tied;
  bool lower = false;
  bool list = false;
  bool torch = false;
  bool csv = false;  // the default: the flag has no effect
  bool json = false;
  std::string svg;
};

plan::LoweringOptions lowering(const ScheduleOptions& options) {
  plan::LoweringOptions lowering = plan::lowering_of(options.request);
  lowering.communicators = plan::parse_communicator_layout(options.communicators);
  lowering.transfers = plan::parse_transfer_mode(options.transfers);
  lowering.receives = options.early_receives ? plan::ReceivePlacement::WithSend
                                             : plan::ReceivePlacement::JustInTime;
  if (options.replicas < 1)
    throw plan::InputError(fmt::format("--replicas {}: at least 1 is needed", options.replicas));
  lowering.replicas = options.replicas;
  lowering.tied_stages = options.tied;
  return lowering;
}

/// Makes a schedule whose stages have different numbers of replicas, on as many ranks.
plan::GeneratedSchedule round_robin(const ScheduleOptions& options) {
  const plan::ScheduleRequest& request = options.request;
  const plan::ScheduleDescriptor& schedule = plan::find_schedule(request.name);
  if (!schedule.takes_copies())
    throw plan::InputError(
        fmt::format("--copies: {} has one replica of each stage; {} supports several", request.name,
                    plan::listed_schedules(&plan::ScheduleDescriptor::takes_copies)));
  plan::Schedule made = schedule.make_with_copies(options.copies, request.microbatches);
  if (request.ranks != 0 && request.ranks != static_cast<int>(made.ranks.size()))
    throw plan::InputError(fmt::format("--copies asks for {} ranks, but --ranks for {}",
                                       made.ranks.size(), request.ranks));
  return {std::move(made)};
}

plan::GeneratedSchedule named_schedule(const ScheduleOptions& options) {
  if (options.request.name.empty())
    throw plan::InputError(
        fmt::format("give a schedule's name ({}) with --ranks and --microbatches, or --check FILE",
                    plan::listed(plan::schedule_names())));
  plan::GeneratedSchedule made =
      options.copies.empty() ? plan::make_with_findings(options.request) : round_robin(options);
  if (options.split)
    made.schedule = plan::split_backwards(std::move(made.schedule));
  if (options.merge)
    made.schedule = plan::merge_backwards(std::move(made.schedule));
  if (options.recompute)
    made.schedule = plan::with_recompute(std::move(made.schedule));
  return made;
}

/// The schedule to show, and its generator's findings.
struct Wanted : trace::LoweredSchedule {
  std::optional<plan::GeneratedSchedule::Bound> bound;
  std::optional<plan::DeepSpeedStream> stream;
};

Wanted wanted(const ScheduleOptions& options) {
  if (!options.check.empty()) {
    trace::LoweredSchedule read = trace::read_schedule(options.check, lowering(options));
    if (read.has_transfers &&
        (options.replicas > 1 || !options.tied.empty() || options.early_receives))
      throw plan::InputError(
          fmt::format("{} already has transfers: --replicas, --tied and --early-receives are for "
                      "schedules without transfers",
                      options.check));
    trace::require_sound(options.check, read.program, read.program.communicators,
                         read.program.transfers);
    return {std::move(read), {}, {}};
  }
  plan::GeneratedSchedule found = named_schedule(options);
  Wanted made{{}, found.bound, std::move(found.stream)};
  made.schedule = std::move(found.schedule);
  made.program = plan::lower(made.schedule, lowering(options));
  return made;
}

plan::Json steps_of(const plan::DeepSpeedStream& stream) {
  plan::Json ranks = plan::Json::array();
  for (const auto& steps : stream.ranks) {
    plan::Json rank = plan::Json::array();
    for (const auto& step : steps) {
      plan::Json texts = plan::Json::array();
      for (const plan::Instruction& i : step)
        texts.push_back(plan::deepspeed_text(i));
      rank.push_back(std::move(texts));
    }
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

plan::Json rows(const trace::LoweredSchedule& wanted, bool lower) {
  if (lower)
    return plan::to_json(wanted.program).at("ranks");
  plan::Json ranks = plan::Json::array();
  for (const auto& actions : wanted.schedule.ranks)
    ranks.push_back(plan::cells(actions));
  return ranks;
}

/// Returns CSV. Cells of --lower include their slots in JSON; in CSV they are those of torch, with
/// our additions.
std::string csv(const plan::Json& ranks) {
  std::string text;
  for (const plan::Json& row : ranks) {
    std::string line;
    for (const plan::Json& cell : row) {
      const auto whole = cell.get<std::string>();
      line += line.empty() ? "" : ",";
      for (std::size_t at = 0; at < whole.size(); ++at)
        if (whole[at] == '#')
          while (at + 1 < whole.size() && whole[at + 1] >= '0' && whole[at + 1] <= '9')
            ++at;
        else
          line += whole[at];
    }
    text += line + "\n";
  }
  return text;
}

std::string answer_text(const ScheduleOptions& options, const trace::LoweredSchedule& made,
                        const plan::Json& ranks) {
  if (!options.check.empty())
    return check_report(options.check, made);
  return options.torch ? plan::to_csv(plan::lower_as_torch(made.schedule)) : csv(ranks);
}

std::string svg_title(const ScheduleOptions& options, const plan::Schedule& schedule) {
  return fmt::format("{}, {} ranks, {} microbatches",
                     options.check.empty() ? options.request.name : options.check,
                     schedule.ranks.size(), schedule.microbatches);
}

void write_svg(const std::string& file, const std::string& title, const plan::Timeline& timeline) {
  plan::Timeline compute = timeline;
  compute.name = "compute";
  compute.memory.clear();
  plan::write_file(file, draw::to_svg(draw::timeline_scene({compute}, title)));
  say("wrote " + file);
}

/// Returns the options with their request completed by --costs and --placement.
ScheduleOptions completed(ScheduleOptions options) {
  plan::ScheduleRequest& request = options.request;
  if (!options.costs.empty())
    request.costs = parse_costs(options.costs);
  if (!options.placement.empty()) {
    request.rank_of_stage = plan::parse_placement(options.placement);
    request.ranks =
        1 + *std::max_element(request.rank_of_stage.begin(), request.rank_of_stage.end());
  }
  return options;
}

/// Returns the schedule's figures under the given costs, and draws it if requested.
plan::Json timed_figures(const ScheduleOptions& options, const Wanted& made) {
  const auto timeline = loop::timed(made.program, options.request.costs);
  plan::Json figures = loop::figures(made.schedule, made.program, timeline);
  if (!options.svg.empty())
    write_svg(options.svg, svg_title(options, made.schedule), timeline);
  if (made.bound) {
    const plan::GeneratedSchedule::Bound& bound = *made.bound;
    figures["lower_bound"] = bound.lower_bound.value;
    figures["gap"] = bound.lower_bound.value > 0 ? bound.longest_span / bound.lower_bound - 1 : 0;
  }
  return figures;
}

void print_answer(const ScheduleOptions& options, const Wanted& made, plan::Json answer) {
  answer["routes"] = made.program.placement.routes;
  if (!options.check.empty())
    answer.update(trace::check_json(made));
  if (made.stream) {
    answer["steps"] = steps_of(*made.stream);
    answer["buffers"] = made.stream->buffers;
  }
  fmt::print("{}\n", answer.dump(2));
}

void say_figures(const plan::Json& figures) {
  say(
      fmt::format("iteration time {}, longest stage span {}, bubble by rank {}, peak activations "
                  "by rank {}",
                  figures["iteration_time"].dump(), figures["longest_stage_span"].dump(),
                  figures["bubble"].dump(), figures["peak_activations"].dump()));
  if (figures.contains("gap"))
    say(fmt::format("at most {:.2f} % above the shortest possible span, {}",
                    100 * figures["gap"].get<double>(), figures["lower_bound"].dump()));
}

int schedule(const ScheduleOptions& given) {
  if (given.list) {
    fmt::print("{}", schedule_table());
    return Done;
  }
  const ScheduleOptions options = completed(given);
  const bool timing = !options.costs.empty() || options.json || !options.svg.empty();
  const Wanted made = wanted(options);
  plan::Json answer{{"ranks", rows(made, options.lower)}};
  if (timing)
    answer.update(timed_figures(options, made));
  if (options.json) {
    print_answer(options, made, std::move(answer));
    return Done;
  }
  fmt::print("{}", answer_text(options, made, answer["ranks"]));
  if (timing)
    say_figures(answer);
  return Done;
}

std::vector<Option> size_options(ScheduleOptions& options) {
  plan::ScheduleRequest& request = options.request;
  return {
      {.names = "name",
       .target = &request.name,
       .help = plan::listed(plan::schedule_names()),
       .value = "NAME",
       .suggestions = plan::schedule_names()},
      {.names = "--ranks", .target = &request.ranks, .help = "Number of pipeline ranks"},
      {.names = "--microbatches",
       .target = &request.microbatches,
       .help = "Number of microbatches per step"},
      {.names = "--chunks",
       .target = &request.chunks,
       .help = "Number of stages per rank; default: the smallest that the schedule supports"},
      {.names = "--group-size",
       .target = &request.group,
       .help = "Number of microbatches per round, or per optimizer step: " +
               plan::listed_schedules([](const auto& entry) { return entry.takes_group; })},
      {.names = "--copies",
       .target = &options.copies,
       .help = "Number of replicas of each stage, such as 2,1,1, which process the microbatches in "
               "turn (1F1B-RR): " +
               plan::listed_schedules(&plan::ScheduleDescriptor::takes_copies),
       .separator = ',',
       .excludes = {"--placement", "--chunks"}},
      {.names = "--placement",
       .target = &options.placement,
       .help = "The stages of each rank, such as 0:[0,1,4],1:[2,3]: " +
               plan::listed_schedules(&plan::ScheduleDescriptor::takes_placement)},
      {.names = "--costs",
       .target = &options.costs,
       .help = "Simulate with these times: forward, input gradient, weight gradient and transfer "
               "of a stage (1,1,1,0); 1/2/1 gives one time per stage. Schedules that order their "
               "actions by them: " +
               plan::listed_schedules([](const auto& entry) { return entry.orders_by_times; })},
      {.names = "--memory-units",
       .target = &request.memory_units,
       .help = "Memory limit of every rank, in units of which a forward allocates 2, and I and W "
               "free 1 each: " +
               plan::listed_schedules([](const auto& entry) { return entry.takes_memory_units; })},
  };
}

std::vector<Option> lowering_options(ScheduleOptions& options) {
  return {
      {.names = "--lower",
       .target = &options.lower,
       .help = "Also show loads, transfers, reductions and optimizer steps"},
      {.names = "--torch",
       .target = &options.torch,
       .help = "Also show communication as torch.distributed.pipelining adds it, in its format",
       // Torch's format cannot express these.
       .excludes = {"--lower", "--communicators", "--transfers", "--early-receives", "--replicas",
                    "--tied"}},
      {.names = "--split", .target = &options.split, .help = "Split every B into I and W"},
      {.names = "--merge",
       .target = &options.merge,
       .help = "Merge every I and the following W into B",
       .excludes = {"--split"}},
      {.names = "--recompute",
       .target = &options.recompute,
       .help = "Recompute activations before each backward",
       .excludes = {"--torch"}},  // whose format cannot express it
      {.names = "--communicators",
       .target = &options.communicators,
       .help = "Queues of transfers: edge, pair or rank",
       .suggestions = plan::communicator_layouts(),
       .shows_default = true},
      {.names = "--transfers",
       .target = &options.transfers,
       .help = "Start of transfers: eager or rendezvous",
       .suggestions = plan::transfer_modes(),
       .shows_default = true},
      {.names = "--early-receives",
       .target = &options.early_receives,
       .help = "Post receives as soon as the sender has sent, as torch does"},
      {.names = "--replicas",
       .target = &options.replicas,
       .help = "Number of data-parallel replicas of the pipeline, which all-reduce gradients",
       .shows_default = true},
      {.names = "--tied",
       .target = &options.tied,
       .help = "Stages that share a weight, such as 0,3",
       .separator = ','},
  };
}

std::vector<Option> answer_options(ScheduleOptions& options) {
  return {
      {.names = "--check",
       .target = &options.check,
       .help = "Prove that this CSV file is sound, or show why not",
       .value = "FILE",
       .excludes = {"--torch", "name", "--ranks", "--microbatches", "--chunks", "--group-size",
                    "--copies", "--placement", "--memory-units", "--split", "--merge",
                    "--recompute"}},
      {.names = "--list",
       .target = &options.list,
       .help = "Show every schedule with its bubble and memory, and their formulas"},
      {.names = "--json",
       .target = &options.json,
       .help = "Print one JSON document",
       .excludes = {"--torch"}},
      {.names = "--csv",
       .target = &options.csv,
       .help = "Print the rows (default)",
       .excludes = {"--json"}},
      {.names = "--svg",
       .target = &options.svg,
       .help = "Draw the schedule to this file",
       .value = "FILE"},
  };
}

Command describe(ScheduleOptions& options) {
  std::vector<Option> all;
  for (auto* const part : {size_options, lowering_options, answer_options})
    for (Option& option : part(options))
      all.push_back(std::move(option));
  return {.name = "schedule",
          .summary = "Print a schedule as CSV, one row per rank, or check a schedule file",
          .options = std::move(all),
          .examples =
              "Examples: pipewright schedule 1f1b --ranks 4 --microbatches 8 --costs 1,1,1\n"
              "          pipewright schedule zb-auto --ranks 4 --microbatches 8 --costs 10,12,8,1 "
              "--memory-units 8\n"
              "          pipewright schedule --check theirs.csv"};
}

}  // namespace

Command schedule_command() { return make_command(describe, schedule); }

}  // namespace pipewright::cli
