#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "commands/commands.hpp"
#include "exit_code.hpp"
#include "pipewright/plan/cluster/grid.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "print/console.hpp"

namespace pipewright::cli {
namespace {

constexpr int most_ranks = 1'000'000;  // a limit for printing

struct TopologyOptions {
  std::vector<std::string> axes;
  std::vector<int> dims;
  std::optional<int> ranks;
  std::optional<int> rank;
  std::vector<std::string> where;
  std::vector<std::string> omit{"data", "pipe"};
  bool json = false;
};

plan::Topology wanted_topology(const TopologyOptions& options) {
  const bool by_default = options.axes.empty() && options.dims.empty();
  if (by_default && !options.ranks)
    throw plan::InputError("give --axes and --dims, or --ranks for a grid of pipe and data");
  auto topology = by_default ? plan::default_grid_topology(*options.ranks)
                             : plan::Topology(options.axes, options.dims);
  if (options.ranks)
    plan::require_ranks(topology, *options.ranks);
  if (topology.rank_count() > most_ranks)
    throw plan::InputError(fmt::format("{} ranks are too many to print: the maximum is {}",
                                       topology.rank_count(), most_ranks));
  return topology;
}

plan::AxisIndex parse_condition(const std::string& text) {
  const std::size_t equals = text.find('=');
  plan::AxisIndex condition{text.substr(0, equals), 0};
  const char* const end = text.data() + text.size();
  const char* const digits = equals == std::string::npos ? end : text.data() + equals + 1;
  const auto [read_to, error] = std::from_chars(digits, end, condition.index);
  if (error != std::errc() || read_to != end)
    throw plan::InputError(
        fmt::format("--where \"{}\": write an axis and an index, such as pipe=0", text));
  return condition;
}

/// Returns the ranks that --rank or --where choose, ascending; all if neither is given.
std::vector<int> chosen_ranks(const plan::Topology& topology, const TopologyOptions& options) {
  if (options.rank) {
    topology.coordinate_of(*options.rank);  // rejects one that does not exist
    return {*options.rank};
  }
  std::vector<plan::AxisIndex> conditions;
  for (const std::string& text : options.where)
    conditions.push_back(parse_condition(text));
  return topology.ranks_where(conditions);
}

/// Throws if --omit names an unknown axis. The defaults data and pipe need not exist.
void refuse_unknown(const std::vector<std::string>& omit, const plan::Topology& topology) {
  for (const std::string& axis : omit)
    if (!axis.empty() && axis != "data" && axis != "pipe")
      topology.length_of(axis);
}

/// Returns the groups that contain a chosen rank.
plan::RankGroups with_any(const std::vector<int>& ranks, plan::RankGroups groups) {
  std::erase_if(groups, [&ranks](const std::vector<int>& group) {
    return std::none_of(group.begin(), group.end(), [&ranks](int rank) {
      return std::binary_search(ranks.begin(), ranks.end(), rank);
    });
  });
  return groups;
}

plan::Json grid_answer(const plan::Grid& grid, const std::vector<int>& ranks) {
  return {{"stages", grid.pipe_size()},
          {"pipe_groups", with_any(ranks, grid.pipe_groups())},
          {"data_groups", with_any(ranks, grid.data_groups())},
          {"model_groups", with_any(ranks, grid.model_groups())},
          {"replica_groups", with_any(ranks, grid.replica_groups())},
          {"p2p_groups", with_any(ranks, grid.p2p_groups())}};
}

plan::Json answer(const plan::Topology& topology, const std::vector<int>& ranks,
                  const std::vector<std::string>& omit) {
  plan::Json coordinates = plan::Json::array(), repr = plan::Json::array();
  for (const int rank : ranks) {
    coordinates.push_back(topology.coordinate_of(rank));
    repr.push_back(topology.repr_of(rank, omit));
  }
  plan::Json groups = plan::Json::object();
  for (const std::string& axis : topology.axes())
    groups[axis] = with_any(ranks, topology.groups_along(axis));
  plan::Json json{{"axes", topology.axes()}, {"dims", topology.lengths()},
                  {"ranks", ranks},          {"coordinates", std::move(coordinates)},
                  {"groups", groups},        {"repr", std::move(repr)}};
  if (plan::is_grid(topology))
    json["grid"] = grid_answer(plan::Grid(topology), ranks);
  return json;
}

std::string table(const plan::Topology& topology, const std::vector<int>& ranks,
                  const std::vector<std::string>& omit) {
  std::string text = "rank";
  for (const std::string& axis : topology.axes())
    text += fmt::format("  {:>4}", axis);
  text += "  repr\n";
  for (const int rank : ranks) {
    text += fmt::format("{:>4}", rank);
    for (const std::string& axis : topology.axes())
      text += fmt::format("  {:>{}}", topology.coordinate_of(rank, axis),
                          std::max<std::size_t>(axis.size(), 4));
    const std::string repr = topology.repr_of(rank, omit);
    text += fmt::format("  {}\n", repr.empty() ? "-" : repr);
  }
  const auto line = [&](const std::string& title, const plan::RankGroups& groups) {
    text += fmt::format("{}: {}\n", title, fmt::join(with_any(ranks, groups), " "));
  };
  for (const std::string& axis : topology.axes())
    line("groups along " + axis, topology.groups_along(axis));
  if (plan::is_grid(topology)) {
    const plan::Grid grid(topology);
    line("replicas of the model", grid.replica_groups());
    line("from stage to next stage", grid.p2p_groups());
  }
  return text;
}

int topology(const TopologyOptions& options) {
  const auto topology = wanted_topology(options);
  const auto ranks = chosen_ranks(topology, options);
  refuse_unknown(options.omit, topology);
  if (options.json)
    fmt::print("{}\n", answer(topology, ranks, options.omit).dump(2));
  else if (ranks.empty())
    say(fmt::format("no rank matches --where {}", fmt::join(options.where, ",")));
  else
    fmt::print("{}", table(topology, ranks, options.omit));
  return Done;
}

Command describe(TopologyOptions& options) {
  return {
      .name = "topology",
      .summary = "Give ranks coordinates on named axes, and show their communication groups",
      .options = {{.names = "--axes",
                   .target = &options.axes,
                   .help = "Names of the axes, such as pipe,data,model; the last is fastest",
                   .separator = ','},
                  {.names = "--dims",
                   .target = &options.dims,
                   .help = "The length of each axis",
                   .separator = ','},
                  {.names = "--ranks",
                   .target = &options.ranks,
                   .help = "Number of ranks, the product of the lengths; without axes: its prime "
                           "factors become pipe and data"},
                  {.names = "--rank", .target = &options.rank, .help = "Show only this rank"},
                  {.names = "--where",
                   .target = &options.where,
                   .help = "Show the ranks with these indices: pipe=0,data=1",
                   .separator = ',',
                   .excludes = {"--rank"}},
                  {.names = "--omit",
                   .target = &options.omit,
                   .help = "Axes to omit from repr; \"\" omits none",
                   .shows_default = true,
                   .separator = ','},
                  {.names = "--json", .target = &options.json, .help = "Print one JSON document"}},
      .examples =
          "Examples: pipewright topology --axes pipe,data --dims 2,4\n"
          "          pipewright topology --ranks 24 --where pipe=0 --json"};
}

}  // namespace

Command topology_command() { return make_command(describe, topology); }

}  // namespace pipewright::cli
