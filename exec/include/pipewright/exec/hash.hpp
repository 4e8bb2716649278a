#pragma once

// Stateless random numbers: a value depends only on what it is for, never on earlier values.

#include <cstdint>
#include <initializer_list>

namespace pipewright::exec {

/// Returns a number that looks random and depends on every word and on their order. Each word is
/// mixed in with a step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
constexpr std::uint64_t hash_of(std::initializer_list<std::int64_t> words) {
  std::uint64_t hash = 0;
  for (const std::int64_t word : words) {
    hash = (hash ^ static_cast<std::uint64_t>(word)) + 0x9e3779b97f4a7c15;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
    hash ^= hash >> 31;
  }
  return hash;
}

}  // namespace pipewright::exec
