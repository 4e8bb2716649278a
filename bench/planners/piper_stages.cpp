#include "planners/piper_stages.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace pipewright::planners {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int most_ideals = 40'000;

const PiperSplit* find_split(const PiperNode& node, int tensor) {
  for (const PiperSplit& split : node.splits)
    if (split.tensor == tensor)
      return &split;
  return nullptr;
}

double at_or_zero(const std::map<int, double>& bytes, int node) {
  const auto found = bytes.find(node);
  return found == bytes.end() ? 0 : found->second;
}

/// Returns each node's successors. Stages are counted from the end, so an ideal contains all
/// successors of its nodes.
std::vector<search::NodeSet> nodes_behind(const PiperProblem& problem) {
  std::vector behind(problem.nodes.size(), search::empty_node_set(problem.nodes.size()));
  for (const PiperEdge& edge : problem.edges)
    search::insert(behind[static_cast<std::size_t>(edge.from)], static_cast<std::size_t>(edge.to));
  return behind;
}

/// Returns the sum over each ideal's nodes.
std::vector<double> sums(const std::vector<search::NodeSet>& ideals,
                         const std::vector<double>& of_nodes) {
  std::vector<double> all;
  all.reserve(ideals.size());
  for (const search::NodeSet& ideal : ideals) {
    double sum = 0;
    for (std::size_t node = 0; node < of_nodes.size(); ++node)
      if (search::holds(ideal, node))
        sum += of_nodes[node];
    all.push_back(sum);
  }
  return all;
}

double least_of(const std::vector<PiperVariant>& variants, double PiperVariant::*number) {
  double least = infinity;
  for (const PiperVariant& variant : variants)
    least = std::min(least, variant.*number);
  return least;
}

RecomputeItem item_of(int node, const PiperVariant& fast, const PiperVariant& slow) {
  return {.node = node,
          .seconds = slow.seconds - fast.seconds,
          .saved_bytes_per_microbatch = fast.bytes_per_microbatch - slow.bytes_per_microbatch,
          .more_bytes = slow.bytes - fast.bytes};
}

}  // namespace

PiperStageOption::PiperStageOption(const PiperStages& stages, std::size_t inner, std::size_t outer,
                                   std::size_t tensor)
    : stages_(&stages), inner_(inner), outer_(outer), tensor_(tensor) {
  const auto& splits = stages.tensors_[tensor].splits;
  const search::NodeSet& nodes = stages.stage(inner, outer);
  for (std::size_t node = 0; node < splits.size(); ++node) {
    if (!search::holds(nodes, node))
      continue;
    if (splits[node] == nullptr) {
      is_possible_ = false;
      return;
    }
    const auto fastest = static_cast<std::size_t>(stages.tensors_[tensor].fastest[node]);
    const PiperVariant& variant = splits[node]->variants[fastest];
    seconds_ += variant.seconds;
    parameter_bytes_ += splits[node]->parameter_bytes;
    bytes_per_microbatch_ += variant.bytes_per_microbatch;
    bytes_ += variant.bytes;
  }
  double crossing = 0;
  for (const PiperEdge& edge : stages.problem_->edges) {
    const auto from = static_cast<std::size_t>(edge.from), to = static_cast<std::size_t>(edge.to);
    const bool receives = search::holds(nodes, to);
    if (receives != search::holds(nodes, from))
      crossing += 2 * (edge.bytes + (receives ? at_or_zero(splits[to]->receive_bytes, edge.from)
                                              : at_or_zero(splits[from]->send_bytes, edge.to)));
  }
  seconds_ += crossing / stages.problem_->bandwidth_per_s;
  is_possible_ = seconds_lost(1) < infinity;
}

bool PiperStageOption::choose(int under_way) const {
  const search::NodeSet& nodes = stages_->stage(inner_, outer_);
  return stages_->tensors_[tensor_].choice.choose(
      bytes(under_way) - stages_->problem_->memory_bytes, under_way,
      [&](int node) { return search::holds(nodes, static_cast<std::size_t>(node)); });
}

double PiperStageOption::seconds_lost(int under_way) const {
  if (bytes(under_way) <= stages_->problem_->memory_bytes)
    return 0;
  for (const auto& [number, seconds] : lost_)
    if (number == under_way)
      return seconds;
  choose(under_way);
  return lost_.emplace_back(under_way, stages_->tensors_[tensor_].choice.seconds_lost()).second;
}

std::vector<int> PiperStageOption::recomputed(int under_way) const {
  choose(under_way);
  return stages_->tensors_[tensor_].choice.nodes();
}

int PiperStageOption::most_under_way(int copies, double seconds) const {
  const PiperProblem& problem = *stages_->problem_;
  const double averaging =
      4 * (copies - 1) * parameter_bytes_ / problem.microbatches / problem.bandwidth_per_s;
  const double left = seconds * copies - seconds_ - averaging;
  if (left < 0 || seconds_lost(1) > left)
    return 0;
  int fits = 1, too_many = 2;
  const int limit = std::min(problem.microbatches, problem.devices) + 1;
  while (too_many < limit && seconds_lost(too_many) <= left) {
    fits = too_many;
    too_many *= 2;
  }
  too_many = std::min(too_many, limit);
  while (too_many - fits > 1) {
    const int middle = (fits + too_many) / 2;
    (seconds_lost(middle) <= left ? fits : too_many) = middle;
  }
  return fits;
}

PiperStages::PiperStages(const PiperProblem& problem)
    : problem_(&problem), ideals_(search::order_ideals(nodes_behind(problem), most_ideals)) {
  std::set<int> sizes;
  std::vector<double> work;
  for (const PiperNode& node : problem.nodes) {
    double least = infinity;
    for (const PiperSplit& split : node.splits) {
      sizes.insert(split.tensor);
      least = std::min(least, split.tensor * least_of(split.variants, &PiperVariant::seconds));
    }
    work.push_back(least);
  }
  work_ = sums(ideals_, work);
  for (const int size : sizes)
    tensors_.push_back(tensor_of(size));
}

PiperStages::Tensor PiperStages::tensor_of(int size) const {
  Tensor tensor{.size = size};
  std::vector<RecomputeItem> items;
  std::vector<double> seconds(problem_->nodes.size());
  auto per_microbatch = seconds, bytes = seconds;
  for (std::size_t node = 0; node < seconds.size(); ++node) {
    const PiperSplit* split = find_split(problem_->nodes[node], size);
    tensor.splits.push_back(split);
    tensor.fastest.push_back(0);
    if (split == nullptr)
      continue;
    const auto& variants = split->variants;
    seconds[node] = least_of(variants, &PiperVariant::seconds);
    per_microbatch[node] = least_of(variants, &PiperVariant::bytes_per_microbatch);
    bytes[node] = least_of(variants, &PiperVariant::bytes);
    if (variants.size() < 2)
      continue;
    const std::size_t fastest = variants[1].seconds < variants[0].seconds ? 1 : 0;
    tensor.fastest.back() = static_cast<int>(fastest);
    items.push_back(item_of(static_cast<int>(node), variants[fastest], variants[1 - fastest]));
  }
  tensor.choice = RecomputeChoice(std::move(items));
  tensor.seconds = sums(ideals_, seconds);
  tensor.least_bytes_per_microbatch = sums(ideals_, per_microbatch);
  tensor.least_bytes = sums(ideals_, bytes);
  return tensor;
}

const PiperStageOption& PiperStages::option(std::size_t inner, std::size_t outer,
                                            std::size_t tensor) const {
  const std::uint64_t key = (inner * ideals_.size() + outer) * tensors_.size() + tensor;
  return options_.try_emplace(key, *this, inner, outer, tensor).first->second;
}

const search::NodeSet& PiperStages::stage(std::size_t inner, std::size_t outer) const {
  stage_ = ideals_[outer];
  for (std::size_t word = 0; word < stage_.size(); ++word)
    stage_[word] &= ~ideals_[inner][word];
  return stage_;
}

std::vector<int> PiperStages::nodes(std::size_t inner, std::size_t outer) const {
  std::vector<int> list;
  for (std::size_t node = 0; node < problem_->nodes.size(); ++node)
    if (search::holds(stage(inner, outer), node))
      list.push_back(static_cast<int>(node));
  return list;
}

}  // namespace pipewright::planners
