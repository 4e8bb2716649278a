// The places of ranks after some places were given up.

#include "pipewright/exec/job/rank_places.hpp"

#include "support/catch.hpp"

namespace rank_places_test {

using pipewright::exec::RankPlaces;
using List = std::vector<int>;

TEST_CASE("Places: a spare place takes over the rank of one given up, and the others stay",
          "[job]") {
  RankPlaces places(3, 2);
  CHECK(places.of_ranks() == List{0, 1, 2});
  CHECK(places.spare() == List{3, 4});
  CHECK(places.give_up(1));
  CHECK(places.of_ranks() == List{0, 3, 2});
  CHECK(places.give_up(1));  // the spare place
  CHECK(places.of_ranks() == List{0, 4, 2});
  CHECK(places.spare().empty());
  CHECK(places.given_up() == List{1, 3});
}

TEST_CASE("Places: without a spare place the number of ranks shrinks, down to the last one",
          "[job]") {
  RankPlaces places(3, 0);
  CHECK(places.give_up(1));
  CHECK(places.of_ranks() == List{0, 2});
  CHECK(places.give_up(0));
  CHECK(places.of_ranks() == List{2});
  CHECK_FALSE(places.give_up(0));
  CHECK(places.of_ranks() == List{2});
  CHECK(places.given_up() == List{1, 0});
  places.take_back();
  CHECK(places.of_ranks() == List{0, 1, 2});
  CHECK(places.given_up().empty());
}

TEST_CASE("Places: places beyond a multiple of all copies become spare", "[job]") {
  RankPlaces places(6, 0, /*copies=*/2);
  CHECK(places.give_up(0));
  CHECK(places.of_ranks() == List{1, 2, 3, 4});
  CHECK(places.spare() == List{5});
  CHECK(places.give_up(3));
  CHECK(places.of_ranks() == List{1, 2, 3, 5});
  CHECK(places.give_up(3));
  CHECK(places.of_ranks() == List{1, 2});
  CHECK(places.spare() == List{3});
  CHECK(places.give_up(0));
  CHECK_FALSE(places.give_up(0));
  CHECK(places.of_ranks() == List{3, 2});
}

}  // namespace rank_places_test
