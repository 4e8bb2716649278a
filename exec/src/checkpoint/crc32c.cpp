#include "pipewright/exec/checkpoint/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace pipewright::exec {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

/// Lookup tables for eight bytes at a time: table k has the remainder of each byte followed by k
/// zero bytes.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  constexpr std::uint32_t polynomial = 0x82f63b78;  // lowest power in the highest bit
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit)
      remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? polynomial : 0);
    tables[0][byte] = remainder;
  }
  for (std::size_t zeros = 1; zeros < 8; ++zeros)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t shorter = tables[zeros - 1][byte];
      tables[zeros][byte] = (shorter >> 8) ^ tables[0][shorter & 0xff];
    }
  return tables;
}

constexpr Tables tables = make_tables();

std::uint32_t eight_bytes(std::uint32_t remainder, const unsigned char* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  word ^= remainder;
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < 8; ++i)
    next ^= tables[7 - i][(word >> (8 * i)) & 0xff];
  return next;
}

}  // namespace

std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t before) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint32_t remainder = ~before;
  for (; size >= 8; size -= 8, bytes += 8)
    remainder = eight_bytes(remainder, bytes);
  for (; size > 0; --size, ++bytes)
    remainder = (remainder >> 8) ^ tables[0][(remainder ^ *bytes) & 0xff];
  return ~remainder;
}

}  // namespace pipewright::exec
