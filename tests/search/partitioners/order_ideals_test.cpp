#include "pipewright/search/partitioners/order_ideals.hpp"

#include <string>

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace order_ideals_test {

using namespace pipewright::search;
using pipewright::test::error_of;

/// Returns a node's predecessors, by node.
std::vector<NodeSet> sets_of(const std::vector<std::vector<std::size_t>>& before) {
  std::vector sets(before.size(), empty_node_set(before.size()));
  for (std::size_t node = 0; node < before.size(); ++node)
    for (const std::size_t other : before[node])
      insert(sets[node], other);
  return sets;
}

std::string text_of(const NodeSet& set, std::size_t nodes) {
  std::string text;
  for (std::size_t node = 0; node < nodes; ++node)
    text += holds(set, node) ? '1' : '0';
  return text;
}

TEST_CASE("A diamond can be cut at six places", "[plan][partition]") {
  std::vector<std::string> ideals;
  for (const NodeSet& ideal : order_ideals(sets_of({{}, {0}, {0}, {1, 2}}), 10))
    ideals.push_back(text_of(ideal, 4));
  CHECK(ideals == std::vector<std::string>{"0000", "1000", "1010", "1100", "1110", "1111"});
}

TEST_CASE("A long chain has a place behind each node", "[plan][partition]") {
  std::vector<std::vector<std::size_t>> chain(100);
  for (std::size_t node = 1; node < chain.size(); ++node)
    chain[node] = {node - 1};
  const auto ideals = order_ideals(sets_of(chain), 101);
  REQUIRE(ideals.size() == 101);
  CHECK(holds(ideals[65], 64));
  CHECK_FALSE(holds(ideals[65], 65));
  CHECK(is_inside(ideals[65], ideals[66]));
  CHECK_FALSE(is_inside(ideals[66], ideals[65]));
  CHECK(all_before(sets_of(chain))[99] == ideals[99]);
}

TEST_CASE("Too many places and a cycle are reported", "[plan][partition]") {
  CHECK(error_of([] {
          order_ideals(sets_of({{}, {}, {}}), 7);
        }) == "the graph can be cut at more than 7 places: it has too many parallel branches");
  CHECK(error_of([] {
          order_ideals(sets_of({{}, {2}, {1}}), 9);
        }) == "the graph has a cycle: no node may depend on itself");
  CHECK(error_of([] {
          all_before(sets_of({{}, {2}, {1}}));
        }) == "the graph has a cycle: no node may depend on itself");
}

}  // namespace order_ideals_test
