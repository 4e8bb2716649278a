#pragma once

// The two units that every prediction is made of. They are types so that a cost cannot be passed
// where a size is meant; arithmetic inside one unit reads as arithmetic.

#include <compare>
#include <cstdint>

namespace pipewright::plan {

/// A duration, or an instant counted from the start of the step.
struct Seconds {
  double value = 0;

  constexpr Seconds& operator+=(Seconds other) { return value += other.value, *this; }
  constexpr Seconds& operator-=(Seconds other) { return value -= other.value, *this; }
  friend constexpr Seconds operator+(Seconds a, Seconds b) { return {a.value + b.value}; }
  friend constexpr Seconds operator-(Seconds a, Seconds b) { return {a.value - b.value}; }
  friend constexpr Seconds operator*(Seconds a, double factor) { return {a.value * factor}; }
  friend constexpr double operator/(Seconds a, Seconds b) { return a.value / b.value; }
  friend constexpr auto operator<=>(Seconds, Seconds) = default;
};

/// An amount of memory; negative only as a difference.
struct Bytes {
  std::int64_t value = 0;

  constexpr Bytes& operator+=(Bytes other) { return value += other.value, *this; }
  constexpr Bytes& operator-=(Bytes other) { return value -= other.value, *this; }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.value - b.value}; }
  friend constexpr Bytes operator*(Bytes a, std::int64_t factor) { return {a.value * factor}; }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
};

}  // namespace pipewright::plan
