#pragma once

// Random numbers that depend only on a seed and on their own number: not on an order, a thread or a
// standard library.

#include <cstdint>

namespace pipewright::sim {

/// Returns a well mixed number in (0, 1] for each pair (splitmix64, Steele et al., OOPSLA 2014).
inline double uniform(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15U + (number + 1) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  x ^= x >> 31;
  return (static_cast<double>(x >> 11) + 1) * 0x1p-53;
}

}  // namespace pipewright::sim
