#include "pipewright/plan/quantity_text.hpp"

#include "support/catch.hpp"

namespace quantity_text_test {

using namespace pipewright::plan;

TEST_CASE("Times have four digits in the unit that suits", "[plan]") {
  CHECK(time_text(0) == "0 ms");
  CHECK(time_text(57.109307) == "57.11 s");
  CHECK(time_text(0.9996) == "1.000 s");
  CHECK(time_text(Seconds{0.0145}) == "14.50 ms");
  CHECK(time_text(0.000123456) == "123.5 µs");
  CHECK(time_difference_text(-0.0031) == "-3.100 ms");
  CHECK(time_difference_text(0) == "+0 ms");
}

TEST_CASE("Sizes are in powers of ten", "[plan]") {
  CHECK(bytes_text(Bytes{80'900'000'000}) == "80.90 GB");
  CHECK(bytes_text(1024) == "1.024 kB");
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(-2'500'000) == "-2.500 MB");
}

}  // namespace quantity_text_test
