#include "pipewright/exec/checkpoint/crc32c.hpp"

#include <numeric>
#include <string>

#include "support/catch.hpp"

namespace crc32c_test {

using pipewright::exec::crc32c;

std::uint32_t checksum_of(const std::string& bytes) { return crc32c(bytes.data(), bytes.size()); }

TEST_CASE("CRC-32C: the vectors of RFC 3720, appendix B.4", "[exec][checkpoint]") {
  std::string rising(32, '\0');
  std::iota(rising.begin(), rising.end(), '\0');
  CHECK(checksum_of(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(checksum_of(std::string(32, '\xff')) == 0x62a8ab43);
  CHECK(checksum_of(rising) == 0x46dd794e);
  CHECK(checksum_of({rising.rbegin(), rising.rend()}) == 0x113fdb5c);
}

TEST_CASE("CRC-32C: the check values of the catalog and of an empty text", "[exec][checkpoint]") {
  CHECK(checksum_of("123456789") == 0xe3069283);
  CHECK(checksum_of("") == 0);
}

TEST_CASE("CRC-32C: a text in two pieces, split anywhere, has the checksum of the whole",
          "[exec][checkpoint]") {
  const std::string text = "The quick brown fox jumps over the lazy dog.";
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    CHECK(crc32c(text.data() + cut, text.size() - cut, crc32c(text.data(), cut)) ==
          checksum_of(text));
}

}  // namespace crc32c_test
