// The places of ranks after some places were given up.

#include "pipewright/exec/job/rank_places.hpp"

#include "support/catch.hpp"

namespace rank_places_test {

using pipewright::exec::RankPlaces;
using List = std::vector<int>;

TEST_CASE("places: a spare one takes the rank of the one that is given up; the others stay",
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

TEST_CASE("places: without a spare one there are fewer ranks, and the last stays", "[job]") {
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

TEST_CASE("places: those that are too many for all copies are spare", "[job]") {
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
