#include "pipewright/plan/quantity.hpp"

#include <limits>

#include "support/catch.hpp"

namespace quantity_test {

using namespace pipewright::plan;

TEST_CASE("An amount of memory beyond 64 bits saturates", "[plan][quantity]") {
  constexpr Bytes most{std::numeric_limits<std::int64_t>::max()};
  constexpr Bytes least{std::numeric_limits<std::int64_t>::min()};
  const Bytes large{9'000'000'000'000'000'000};
  CHECK((large + large == most));
  CHECK((Bytes{-1} + least == least));
  CHECK((Bytes{} - large - large == least));
  CHECK((Bytes{5} - least == most));
  CHECK((large * 3 == most));
  CHECK((large * -3 == least));
  CHECK((least * -1 == most));
  Bytes sum = large;
  sum += large;
  CHECK((sum == most));
  sum -= large;
  CHECK((sum == Bytes{223'372'036'854'775'807}));
}

TEST_CASE("Amounts within 64 bits are exact", "[plan][quantity]") {
  const Bytes odd{9'007'199'254'740'993};  // not representable as a double
  CHECK((odd + odd == Bytes{18'014'398'509'481'986}));
  CHECK((odd - odd * 2 == Bytes{-9'007'199'254'740'993}));
  CHECK((odd * 0 == Bytes{}));
  CHECK((Bytes{-3} * -4 == Bytes{12}));
}

}  // namespace quantity_test
