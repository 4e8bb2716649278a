// From the description of the algorithm (Yann Collet, xxHash_spec.md).

#include "timeline/xxh64.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace pipewright::plan {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr std::uint64_t prime1 = 0x9E3779B185EBCA87;
constexpr std::uint64_t prime2 = 0xC2B2AE3D27D4EB4F;
constexpr std::uint64_t prime3 = 0x165667B19E3779F9;
constexpr std::uint64_t prime4 = 0x85EBCA77C2B2AE63;
constexpr std::uint64_t prime5 = 0x27D4EB2F165667C5;

template <class Word>
Word word_at(const std::byte* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

std::uint64_t stirred(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * prime2, 31) * prime1;
}

/// Four lanes that do not wait for each other; moves `bytes` behind the last whole stripe.
std::uint64_t stripes_of(std::span<const std::byte>& bytes) {
  std::array<std::uint64_t, 4> lanes{prime1 + prime2, prime2, 0, 0 - prime1};
  const std::byte* at = bytes.data();
  for (std::size_t stripes = bytes.size() / 32; stripes > 0; --stripes, at += 32)
    for (std::size_t lane = 0; lane < 4; ++lane)
      lanes[lane] = stirred(lanes[lane], word_at<std::uint64_t>(at + 8 * lane));
  bytes = bytes.last(bytes.size() % 32);

  std::uint64_t sum = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
                      std::rotl(lanes[3], 18);
  for (const std::uint64_t lane : lanes)
    sum = (sum ^ stirred(0, lane)) * prime1 + prime4;
  return sum;
}

}  // namespace

std::uint64_t xxh64(std::span<const std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  std::uint64_t sum = (size < 32 ? prime5 : stripes_of(bytes)) + size;
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size();
  for (; end - at >= 8; at += 8)
    sum = std::rotl(sum ^ stirred(0, word_at<std::uint64_t>(at)), 27) * prime1 + prime4;
  if (end - at >= 4) {
    sum = std::rotl(sum ^ (word_at<std::uint32_t>(at) * prime1), 23) * prime2 + prime3;
    at += 4;
  }
  for (; at != end; ++at)
    sum = std::rotl(sum ^ (static_cast<std::uint64_t>(*at) * prime5), 11) * prime1;
  sum = (sum ^ (sum >> 33)) * prime2;
  sum = (sum ^ (sum >> 29)) * prime3;
  return sum ^ (sum >> 32);
}

}  // namespace pipewright::plan
