#include <fstream>
#include <sstream>

#include "commands.hpp"
#include "console.hpp"
#include "pipewright/plan/lower.hpp"
#include "pipewright/plan/schedules.hpp"
#include "pipewright/sim/simulate.hpp"
#include "planning.hpp"

namespace pipewright::cli {
namespace {

struct ScheduleOptions {
  std::string name;
  int ranks = 0;
  int microbatches = 0;
  std::vector<double> costs;  // f, i, w and, if given, the transfer
  std::string check;
  bool lower = false;
  bool csv = false;  // the default: the flag only says so
  bool json = false;
};

std::string read_text(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (stream)
    text << stream.rdbuf();
  if (!stream || !text)
    throw plan::InputError(fmt::format("{}: cannot be read", file));
  return std::move(text).str();
}

plan::Schedule wanted_schedule(const ScheduleOptions& options) {
  if (!options.check.empty()) {
    auto schedule = plan::parse_csv(read_text(options.check), options.check);
    try {
      plan::validate(schedule);
    } catch (const plan::InputError& error) {
      throw plan::Infeasible(fmt::format("{} is not sound:\n{}", options.check, error.what()));
    }
    return schedule;
  }
  if (options.name.empty())
    throw plan::InputError(
        fmt::format("give a schedule's name ({}) with --ranks and --microbatches, or --check FILE",
                    plan::listed(plan::schedule_names())));
  return plan::make_schedule(options.name, options.ranks, options.microbatches);
}

/// Equal stages of the given costs; each forward keeps one activation, so that bytes count them.
std::vector<plan::StageCost> equal_stages(const ScheduleOptions& options, int stages) {
  const auto& given = options.costs;
  if (given.size() != 3 && given.size() != 4)
    throw plan::InputError(
        "--costs: write forward, input gradient, weight gradient and, if it is "
        "not 0, the transfer: 1,1,1 or 1,1,1,0.1");
  for (const double cost : given)
    if (!(cost >= 0) || cost > 1e12)
      throw plan::InputError(fmt::format("--costs: {} is not possible: times are 0 or more", cost));
  plan::StageCost stage;
  stage.forward = {given[0]};
  stage.input_gradient = {given[1]};
  stage.weight_gradient = {given[2]};
  stage.activation = {1};
  stage.forward_peak = {1};
  return std::vector<plan::StageCost>(static_cast<std::size_t>(stages), stage);
}

plan::Timeline timed(const ScheduleOptions& options, const plan::Program& program) {
  plan::Cluster cluster;
  cluster.devices_per_node = static_cast<int>(program.ranks.size());
  if (options.costs.size() == 4)
    cluster.within_node.latency = {options.costs[3]};
  const auto outcome =
      sim::simulate(program, equal_stages(options, plan::stage_count(program)), cluster);
  // A valid Schedule, lowered as `lower` does, cannot deadlock under eager transfers on edges.
  return std::get<sim::Completed>(outcome).timeline;
}

plan::Json rows(const plan::Schedule& schedule, const plan::Program& program, bool lower) {
  plan::Json ranks = plan::Json::array();
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    plan::Json row = plan::Json::array();
    if (lower)
      for (const plan::Instruction& i : program.ranks[rank])
        row.push_back(to_string(i));
    else
      for (const plan::Action& action : schedule.ranks[rank])
        row.push_back(to_string(action));
    ranks.push_back(std::move(row));
  }
  return ranks;
}

std::string csv(const plan::Json& ranks) {
  std::string text;
  for (const plan::Json& row : ranks) {
    std::string line;
    for (const plan::Json& cell : row)
      line += (line.empty() ? "" : ",") + cell.get<std::string>();
    text += line + "\n";
  }
  return text;
}

int schedule(ScheduleOptions options) {
  const auto schedule = wanted_schedule(options);
  const auto program = plan::lower(schedule);
  const auto ranks = rows(schedule, program, options.lower);
  const bool with_times = !options.costs.empty() || options.json;
  if (options.costs.empty())
    options.costs = {1, 1, 1, 0};

  plan::Json answer{{"ranks", ranks}};
  if (with_times) {
    const auto timeline = timed(options, program);
    const auto figures = plan::bubble_per_rank(timeline);
    plan::Json bubble = plan::Json::array(), peak = plan::Json::array();
    for (const plan::Seconds b : figures)
      bubble.push_back(b.value);
    for (const plan::Bytes b : plan::peak_per_rank(timeline))
      peak.push_back(b.value);
    answer["iteration_time"] = timeline.length.value;
    answer["bubble"] = bubble;
    answer["peak_activations"] = peak;
  }
  if (options.json) {
    fmt::print("{}\n", answer.dump(2));
    return Done;
  }
  if (!options.check.empty())
    fmt::print("{}: sound: {} ranks, {} stages, {} microbatches\n", options.check,
               schedule.ranks.size(), plan::stage_count(schedule), schedule.microbatches);
  else
    fmt::print("{}", csv(ranks));
  if (with_times)
    say(fmt::format("iteration time {}, bubble by rank {}, peak activations by rank {}",
                    answer["iteration_time"].dump(), answer["bubble"].dump(),
                    answer["peak_activations"].dump()));
  return Done;
}

}  // namespace

Action add_schedule(CLI::App& program) {
  auto* const command = program.add_subcommand(
      "schedule", "Print a schedule as CSV, one row a rank, or check somebody's file");
  auto options = std::make_shared<ScheduleOptions>();
  command->add_option("name", options->name, plan::listed(plan::schedule_names()));
  command->add_option("--ranks", options->ranks, "Pipeline ranks");
  command->add_option("--microbatches", options->microbatches, "Microbatches of a step");
  command
      ->add_option("--costs", options->costs,
                   "Time it for equal stages: forward, input gradient, weight gradient, transfer")
      ->delimiter(',');
  command->add_option("--check", options->check, "Prove this CSV file sound, or say why not")
      ->type_name("FILE");
  command->add_flag("--lower", options->lower, "With loads, transfers and optimizer steps");
  auto* const json = command->add_flag("--json", options->json, "Print one JSON document");
  command->add_flag("--csv", options->csv, "Print the rows (the default)")->excludes(json);
  command->footer("Example: pipewright schedule 1f1b --ranks 4 --microbatches 8 --costs 1,1,1");
  return [options] { return schedule(*options); };
}

}  // namespace pipewright::cli
