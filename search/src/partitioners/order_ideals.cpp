#include "pipewright/search/partitioners/order_ideals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "pipewright/plan/error.hpp"

namespace pipewright::search {
namespace {

constexpr const char* has_cycle = "the graph has a cycle: no node may depend on itself";

}  // namespace

NodeSet empty_node_set(std::size_t nodes) { return NodeSet((nodes + 63) / 64); }

bool smaller_first(const NodeSet& a, const NodeSet& b) {
  const auto size = [](const NodeSet& set) {
    int nodes = 0;
    for (const std::uint64_t word : set)
      nodes += std::popcount(word);
    return nodes;
  };
  const int of_a = size(a), of_b = size(b);
  return of_a != of_b ? of_a < of_b : a < b;
}

std::vector<NodeSet> all_before(const std::vector<NodeSet>& before) {
  auto all = before;
  NodeSet done = empty_node_set(before.size());
  for (std::size_t round = 0; round < before.size(); ++round) {
    std::size_t next = 0;
    while (next < before.size() && (holds(done, next) || !is_inside(before[next], done)))
      ++next;
    if (next == before.size())
      throw plan::InputError(has_cycle);
    for (std::size_t node = 0; node < before.size(); ++node)
      if (holds(before[next], node))
        insert_all(all[next], all[node]);
    insert(done, next);
  }
  return all;
}

std::vector<NodeSet> order_ideals(const std::vector<NodeSet>& before, int most) {
  const std::size_t nodes = before.size();
  std::vector<NodeSet> of_one_size{empty_node_set(nodes)};
  std::vector<NodeSet> all = of_one_size;
  for (std::size_t size = 0; size < nodes; ++size) {
    std::vector<NodeSet> larger;
    for (const NodeSet& ideal : of_one_size)
      for (std::size_t node = 0; node < nodes; ++node)
        if (!holds(ideal, node) && is_inside(before[node], ideal)) {
          larger.push_back(ideal);
          insert(larger.back(), node);
        }
    if (larger.empty())
      throw plan::InputError(has_cycle);
    std::sort(larger.begin(), larger.end());
    larger.erase(std::unique(larger.begin(), larger.end()), larger.end());
    all.insert(all.end(), larger.begin(), larger.end());
    if (all.size() > static_cast<std::size_t>(most))
      throw plan::InputError(fmt::format(
          "the graph can be cut at more than {} places: it has too many parallel branches", most));
    of_one_size = std::move(larger);
  }
  return all;
}

}  // namespace pipewright::search
