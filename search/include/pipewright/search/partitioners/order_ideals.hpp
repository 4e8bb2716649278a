#pragma once

// Order ideals of a graph: sets of nodes that contain every predecessor of each of their nodes. The
// nodes before a cut are such a set, so a chain of order ideals is a partition into stages.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pipewright::search {

/// A set of nodes as bits.
using NodeSet = std::vector<std::uint64_t>;

NodeSet empty_node_set(std::size_t nodes);

inline std::uint64_t bit_of_node(std::size_t node) {
  return std::uint64_t{1} << (63 - node % 64);  // so that sets compare like lists of flags
}

inline void insert(NodeSet& set, std::size_t node) { set[node / 64] |= bit_of_node(node); }

inline bool holds(const NodeSet& set, std::size_t node) {
  return (set[node / 64] & bit_of_node(node)) != 0;
}

inline void insert_all(NodeSet& set, const NodeSet& others) {
  for (std::size_t word = 0; word < set.size(); ++word)
    set[word] |= others[word];
}

inline bool overlap(const NodeSet& a, const NodeSet& b) {
  for (std::size_t word = 0; word < a.size(); ++word)
    if ((a[word] & b[word]) != 0)
      return true;
  return false;
}

inline bool is_empty(const NodeSet& set) { return !overlap(set, set); }

/// Returns true if `outer` contains every node of `inner`.
inline bool is_inside(const NodeSet& inner, const NodeSet& outer) {
  for (std::size_t word = 0; word < inner.size(); ++word)
    if ((inner[word] & ~outer[word]) != 0)
      return false;
  return true;
}

/// Orders sets by size; sets of equal size compare like lists of flags.
bool smaller_first(const NodeSet& a, const NodeSet& b);

/// Returns for each node all nodes that come before it, directly or not. Throws InputError for a
/// cycle.
std::vector<NodeSet> all_before(const std::vector<NodeSet>& before);

/// Returns all order ideals, the empty one first and smaller ones before larger ones. `before[n]`
/// are the predecessors of node n. Throws InputError if there are more than `most`, or a cycle.
std::vector<NodeSet> order_ideals(const std::vector<NodeSet>& before, int most);

}  // namespace pipewright::search
