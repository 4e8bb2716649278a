#include "pipewright/trace/explain/job_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <limits>
#include <map>
#include <set>
#include <string_view>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::trace {
namespace {

using Order = std::vector<const TracedRank*>;

/// Sorts traces by rank, or keeps the given order if no trace says its rank.
Order in_order(const std::vector<TracedRank>& ranks) {
  Order order;
  for (const TracedRank& rank : ranks)
    order.push_back(&rank);
  for (const TracedRank& rank : ranks)
    if (rank.rank.has_value() != ranks.front().rank.has_value())
      throw plan::InputError(fmt::format(
          "{}: does not state its rank (distributedInfo.rank), but {} does: give traces that all "
          "state it",
          rank.rank ? ranks.front().file : rank.file, rank.rank ? rank.file : ranks.front().file));
  if (!ranks.front().rank)
    return order;
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return *a->rank < *b->rank; });
  for (std::size_t next = 1; next < order.size(); ++next)
    if (*order[next]->rank == *order[next - 1]->rank)
      throw plan::InputError(
          fmt::format("{} and {}: both are of rank {} (distributedInfo.rank); "
                      "give one trace for each rank",
                      order[next - 1]->file, order[next]->file, *order[next]->rank));
  return order;
}

void require_one_run(const Order& order) {
  const TracedRank& first = *order.front();
  for (const TracedRank* rank : order) {
    if (rank->world_size != first.world_size)
      throw plan::InputError(fmt::format(
          "{}: distributedInfo.world_size is {}, but {} has {}: they are of different runs",
          rank->file, rank->world_size.value_or(0), first.file, first.world_size.value_or(0)));
    if (rank->source != first.source)
      throw plan::InputError(fmt::format(
          "{}: its actions were found by {}, those of {} by {}: they are of different runs",
          rank->file, to_string(rank->source), first.file, to_string(first.source)));
  }
}

/// Throws unless the ranks of the pipeline, as one of several, are equally spaced.
void require_equal_distances(const Order& order) {
  if (!order.front()->rank || !order.front()->world_size || order.size() < 2)
    return;
  const int apart = *order[1]->rank - *order[0]->rank;
  std::set<int> given;
  for (const TracedRank* rank : order)
    given.insert(*rank->rank);
  for (std::size_t next = 1; next < order.size(); ++next)
    if (const int wanted = *order[next - 1]->rank + apart; *order[next]->rank != wanted) {
      int missing = *order.front()->rank;
      while (given.contains(missing))
        ++missing;
      throw plan::InputError(
          fmt::format("ranks {}: rank {} is missing; give the traces of all ranks of a pipeline",
                      fmt::join(given, ", "), missing));
    }
}

/// Returns its number within the job.
int number_at(const Order& order, std::size_t place) {
  return order[place]->rank.value_or(static_cast<int>(place));
}

std::map<int, const TracedRank*> by_number(const Order& order) {
  std::map<int, const TracedRank*> ranks;
  for (std::size_t place = 0; place < order.size(); ++place)
    ranks[number_at(order, place)] = order[place];
  return ranks;
}

// ---- groups named in the traces

/// Returns the group with one of these names that contains the rank; null if there is none, or
/// several that differ.
const RankGroup* group_of(const TracedRank& rank, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const RankGroup* found = nullptr;
    bool differ = false;
    for (const RankGroup& group : rank.groups) {
      if (group.description != name || !rank.rank ||
          std::find(group.ranks.begin(), group.ranks.end(), *rank.rank) == group.ranks.end())
        continue;
      differ = differ || (found != nullptr && found->ranks != group.ranks);
      found = &group;
    }
    if (found != nullptr && !differ)
      return found;
  }
  return nullptr;
}

/// The names are those of torch's device mesh and of Megatron-LM.
const RankGroup* pipeline_of(const TracedRank& rank) {
  return group_of(rank, {"mesh_pp", "mesh_pipe", "PIPELINE_MODEL_PARALLEL_GROUP"});
}

/// A rank's coordinate along an axis.
struct Coordinate {
  std::int64_t length = 1;
  std::int64_t index = 0;
};

Coordinate along(const TracedRank& rank, std::initializer_list<std::string_view> names) {
  const RankGroup* const group = group_of(rank, names);
  if (group == nullptr)
    return {};
  const auto found = std::find(group->ranks.begin(), group->ranks.end(), *rank.rank);
  return {static_cast<std::int64_t>(group->ranks.size()), found - group->ranks.begin()};
}

std::vector<plan::AxisIndex> place_of(const TracedRank& rank) {
  const Coordinate context = along(rank, {"mesh_cp", "CONTEXT_PARALLEL_GROUP"});
  const Coordinate tensor = along(rank, {"mesh_tp", "TENSOR_MODEL_PARALLEL_GROUP"});
  Coordinate data = along(rank, {"mesh_dp", "mesh_batch", "DATA_PARALLEL_GROUP"});
  if (data.length == 1) {
    // torchtitan's fsdp group also contains the context-parallel ranks.
    const Coordinate replica = along(rank, {"mesh_dp_replicate"});
    const Coordinate shard = context.length == 1 ? along(rank, {"mesh_dp_shard", "mesh_fsdp"})
                                                 : along(rank, {"mesh_dp_shard"});
    data = {replica.length * shard.length, replica.index * shard.length + shard.index};
  }
  std::vector<plan::AxisIndex> place;
  const auto add = [&](const char* axis, const Coordinate& own) {
    if (own.length > 1 && own.length <= std::numeric_limits<int>::max())
      place.push_back({axis, static_cast<int>(own.index)});
  };
  add("data", data);
  add("context", context);
  add("tensor", tensor);
  return place;
}

/// Returns the pipelines ordered by the rank of their first stage; empty if the traces name none.
std::set<std::vector<int>> named_pipelines(const Order& order) {
  std::set<std::vector<int>> named;
  for (const TracedRank* rank : order)
    if (const RankGroup* const group = pipeline_of(*rank))
      named.insert(group->ranks);
  std::map<int, const std::vector<int>*> pipeline_of_rank;
  for (const std::vector<int>& pipeline : named)
    for (const int rank : pipeline)
      if (const auto [at, is_new] = pipeline_of_rank.emplace(rank, &pipeline); !is_new)
        throw plan::InputError(
            fmt::format("rank {} appears twice in the pipelines that the traces name "
                        "(distributedInfo.pg_config), {} and {}: they are of different runs",
                        rank, fmt::join(*at->second, ", "), fmt::join(pipeline, ", ")));
  for (const TracedRank* rank : order)
    if (!named.empty() && !pipeline_of_rank.contains(*rank->rank))
      throw plan::InputError(
          fmt::format("{}: rank {} is in none of the pipelines that the traces name "
                      "(distributedInfo.pg_config): they are of different runs",
                      rank->file, *rank->rank));
  return named;
}

/// Throws if a rank has no trace.
JobPipeline pipeline_with(const std::vector<int>& numbers,
                          const std::map<int, const TracedRank*>& ranks) {
  JobPipeline pipeline{.numbers = numbers};
  for (const int number : numbers) {
    const auto found = ranks.find(number);
    if (found == ranks.end())
      throw plan::InputError(fmt::format(
          "ranks {} are a pipeline (distributedInfo.pg_config): rank {} is missing; give the "
          "traces of all ranks of a pipeline",
          fmt::join(numbers, ", "), number));
    pipeline.ranks.push_back(found->second);
  }
  return pipeline;
}

std::vector<JobPipeline> by_groups(const Order& order, const std::set<std::vector<int>>& named) {
  const auto ranks = by_number(order);
  std::vector<JobPipeline> pipelines;
  std::set<std::string> labels;
  for (const std::vector<int>& numbers : named) {
    pipelines.push_back(pipeline_with(numbers, ranks));
    pipelines.back().place = place_of(*pipelines.back().ranks.front());
    labels.insert(to_string(pipelines.back().place));
  }
  // If the known axes do not distinguish the pipelines, they are numbered.
  if (labels.size() < pipelines.size())
    for (std::size_t at = 0; at < pipelines.size(); ++at)
      pipelines[at].place = {{"pipeline", static_cast<int>(at)}};
  return pipelines;
}

// ---- axes given by the user

void require_all_ranks(const Order& order, const plan::Topology& axes) {
  const auto require = [&](int ranks, const std::string& of) {
    try {
      plan::require_ranks(axes, ranks);
    } catch (const plan::InputError& error) {
      throw plan::InputError(fmt::format("--axes: {} {}", error.what(), of));
    }
  };
  const TracedRank& first = *order.front();
  if (first.world_size)
    require(*first.world_size,
            fmt::format("in the job (distributedInfo.world_size of {})", first.file));
  require(static_cast<int>(order.size()), "traces; give one for each rank of the job");
  for (std::size_t place = 0; place < order.size(); ++place)
    if (const int number = number_at(order, place); number >= axes.rank_count())
      throw plan::InputError(
          fmt::format("{}: rank {} is outside of --axes, whose {} ranks are 0 to {}",
                      order[place]->file, number, axes.rank_count(), axes.rank_count() - 1));
}

std::vector<JobPipeline> along_axes(const Order& order, const plan::Topology& axes) {
  require_all_ranks(order, axes);
  const auto ranks = by_number(order);
  std::vector<JobPipeline> pipelines;
  for (const std::vector<int>& numbers : axes.groups_along("pipe")) {
    JobPipeline pipeline = pipeline_with(numbers, ranks);
    for (std::size_t axis = 0; axis < axes.axes().size(); ++axis)
      if (axes.axes()[axis] != "pipe" && axes.lengths()[axis] > 1)
        pipeline.place.push_back({axes.axes()[axis], axes.coordinate_of(numbers.front())[axis]});
    pipelines.push_back(std::move(pipeline));
  }
  return pipelines;
}

/// Throws if the pipelines contradict those that the traces name: the traces take precedence over
/// `--axes`.
void require_as_named(const std::vector<JobPipeline>& pipelines,
                      const std::set<std::vector<int>>& named) {
  for (const JobPipeline& pipeline : pipelines) {
    if (named.empty() || named.contains(pipeline.numbers))
      continue;
    const auto other = std::find_if(named.begin(), named.end(), [&](const std::vector<int>& own) {
      return std::find(own.begin(), own.end(), pipeline.numbers.front()) != own.end();
    });
    throw plan::InputError(fmt::format(
        "--axes: ranks {} would be a pipeline, but the traces say (distributedInfo.pg_config) "
        "that {} are; leave --axes out",
        fmt::join(pipeline.numbers, ", "), fmt::join(*other, ", ")));
  }
}

}  // namespace

std::string to_string(const std::vector<plan::AxisIndex>& place) {
  std::string text;
  for (const plan::AxisIndex& own : place)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", own.axis, own.index);
  return text;
}

plan::Topology axes_of(const std::string& text) {
  const std::vector<std::string> known = plan::Pipeline{}.axes;
  const auto refuse = [&](const std::string& why) -> plan::InputError {
    return plan::InputError(fmt::format(
        "--axes \"{}\": {}; write axes with their lengths, the last one fastest, such as "
        "pipe=4,data=2 (the axes are {})",
        text, why, fmt::join(known, ", ")));
  };
  std::vector<std::string> axes;
  std::vector<int> lengths;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = std::min(part.find('='), part.size());
    axes.push_back(part.substr(0, equals));
    int& length = lengths.emplace_back();
    const char* const last = part.data() + part.size();
    const char* const digits = part.data() + std::min(equals + 1, part.size());
    const auto [read_to, error] = std::from_chars(digits, last, length);
    if (error != std::errc() || read_to != last)
      throw refuse(fmt::format("\"{}\" has no length", part));
    if (std::find(known.begin(), known.end(), axes.back()) == known.end())
      throw refuse(fmt::format("no axis is called \"{}\"", axes.back()));
  }
  if (std::find(axes.begin(), axes.end(), "pipe") == axes.end())
    throw refuse("pipe is missing");
  try {
    return {axes, lengths};
  } catch (const plan::InputError& error) {
    throw refuse(error.what());
  }
}

std::vector<JobPipeline> pipelines_of(const std::vector<TracedRank>& ranks,
                                      const std::optional<plan::Topology>& axes) {
  if (ranks.empty())
    throw plan::InputError("no trace given: give one for each rank of a pipeline");
  const Order order = in_order(ranks);
  require_one_run(order);
  const auto named = named_pipelines(order);
  if (axes) {
    auto pipelines = along_axes(order, *axes);
    require_as_named(pipelines, named);
    return pipelines;
  }
  if (!named.empty())
    return by_groups(order, named);
  require_equal_distances(order);
  JobPipeline all{.ranks = order};
  for (std::size_t place = 0; place < order.size(); ++place)
    all.numbers.push_back(number_at(order, place));
  return {std::move(all)};
}

}  // namespace pipewright::trace
