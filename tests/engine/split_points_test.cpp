#include "pipewright/engine/split_points.hpp"

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace split_points_test {

using namespace pipewright;
using engine::SplitPoint;
using Side = engine::SplitPoint::Side;

const std::vector<std::string> layers{"embedding", "block1", "block2", "block3", "head"};

std::vector<int> boundaries(const std::vector<SplitPoint>& points) {
  return engine::boundaries_at(points, layers);
}
std::string refusal(const std::vector<SplitPoint>& points) {
  return test::error_of([&] { boundaries(points); });
}

TEST_CASE("Stages begin at the beginning or the end of a layer", "[exec]") {
  CHECK(boundaries({}) == std::vector<int>{0, 5});
  CHECK(boundaries({{"block2", Side::Beginning}}) == std::vector<int>{0, 2, 5});
  CHECK(boundaries({{"block3", Side::End}, {"embedding", Side::End}}) ==
        std::vector<int>{0, 1, 4, 5});
}

TEST_CASE("A name stands for all layers in it", "[exec]") {
  const std::vector<std::string> nested{"embedding", "encoder.0", "encoder.1.0", "encoder.1.1",
                                        "encoders"};
  const auto at = [&](const std::string& name, Side side) {
    return engine::boundaries_at({{name, side}}, nested);
  };
  CHECK(at("encoder", Side::Beginning) == std::vector<int>{0, 1, 5});
  CHECK(at("encoder", Side::End) == std::vector<int>{0, 4, 5});
  CHECK(at("encoder.1", Side::Beginning) == std::vector<int>{0, 2, 5});
  CHECK(at("encoder.1.0", Side::End) == std::vector<int>{0, 3, 5});
  CHECK(at("encoders", Side::Beginning) == std::vector<int>{0, 4, 5});
}

TEST_CASE("Points that do not form stages are rejected", "[exec]") {
  CHECK(refusal({{"blok2", Side::Beginning}}) ==
        "there is no layer \"blok2\" to split at, did you mean \"block2\"? (possible: embedding, "
        "block1, block2, block3 or head)");
  CHECK(refusal({{"embedding", Side::Beginning}}) ==
        "a split at the beginning of \"embedding\" leaves the first stage empty");
  CHECK(refusal({{"head", Side::End}}) ==
        "a split at the end of \"head\" leaves the last stage empty");
  CHECK(refusal({{"block1", Side::End}, {"block2", Side::Beginning}}) ==
        "the end of \"block1\" and the beginning of \"block2\" are the same boundary: split there "
        "once");
}

}  // namespace split_points_test
