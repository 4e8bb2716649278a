#include "sha256.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace pipewright::exec {
namespace {

constexpr std::size_t sha_block = 64;
constexpr int sha_rounds = 64;
using ShaState = std::array<std::uint32_t, 8>;

/// The standard takes its constants from the roots of the first primes: the first 32 bits behind
/// the point.
template <std::size_t Count>
std::array<std::uint32_t, Count> of_primes(long double (*root)(long double)) {
  std::array<std::uint32_t, Count> words{};
  std::size_t found = 0;
  for (int candidate = 2; found < Count; ++candidate) {
    bool prime = true;
    for (int divisor = 2; divisor * divisor <= candidate; ++divisor)
      prime = prime && candidate % divisor != 0;
    if (!prime)
      continue;
    const long double value = root(static_cast<long double>(candidate));
    words[found++] = static_cast<std::uint32_t>((value - std::floor(value)) * 4294967296.0L);
  }
  return words;
}

std::uint32_t big_endian_at(const char* bytes) {
  std::uint32_t word = 0;
  for (int b = 0; b < 4; ++b)
    word = word << 8 | static_cast<unsigned char>(bytes[b]);
  return word;
}

void take_in_block(ShaState& state, const char* block) {
  static const auto constants = of_primes<sha_rounds>(std::cbrt);
  std::array<std::uint32_t, sha_rounds> w{};
  for (std::size_t t = 0; t < sha_rounds; ++t)
    w[t] = t < 16 ? big_endian_at(block + 4 * t)
                  : w[t - 16] + w[t - 7] +
                        (std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ w[t - 15] >> 3) +
                        (std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ w[t - 2] >> 10);
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t t = 0; t < sha_rounds; ++t) {
    const std::uint32_t one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                              ((e & f) ^ (~e & g)) + constants[t] + w[t];
    const std::uint32_t two =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
  }
  const ShaState added{a, b, c, d, e, f, g, h};
  for (std::size_t word = 0; word < state.size(); ++word)
    state[word] += added[word];
}

}  // namespace

std::string sha256(std::string_view bytes) {
  static const auto start = of_primes<8>(std::sqrt);
  ShaState state = start;
  std::string rest(bytes.substr(bytes.size() / sha_block * sha_block));
  for (std::size_t at = 0; at + sha_block <= bytes.size(); at += sha_block)
    take_in_block(state, bytes.data() + at);
  rest += '\x80';
  rest.resize(rest.size() + (2 * sha_block - 8 - rest.size()) % sha_block);
  const std::uint64_t bits = 8 * static_cast<std::uint64_t>(bytes.size());
  for (int shift = 56; shift >= 0; shift -= 8)
    rest += static_cast<char>(bits >> shift);
  for (std::size_t at = 0; at < rest.size(); at += sha_block)
    take_in_block(state, rest.data() + at);
  std::string digest;
  for (const std::uint32_t word : state)
    for (int shift = 24; shift >= 0; shift -= 8)
      digest += static_cast<char>(word >> shift);
  return digest;
}

std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  std::string inner = key.size() > sha_block ? sha256(key) : std::string(key);
  inner.resize(sha_block);
  std::string outer = inner;
  for (char& byte : inner)
    byte = static_cast<char>(byte ^ 0x36);
  for (char& byte : outer)
    byte = static_cast<char>(byte ^ 0x5c);
  return sha256(outer + sha256(inner.append(bytes)));
}

bool equal_proofs(std::string_view a, std::string_view b) {
  int difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t byte = 0; byte < std::min(a.size(), b.size()); ++byte)
    difference |= a[byte] ^ b[byte];
  return difference == 0;
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t done = 0; done < count;) {
    const auto got = getrandom(bytes.data() + done, count - done, 0);
    if (got < 0 && errno != EINTR)
      throw std::runtime_error(fmt::format("no random numbers: {}", std::strerror(errno)));
    done += got < 0 ? 0 : static_cast<std::size_t>(got);
  }
  return bytes;
}

std::string in_hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace pipewright::exec
