#pragma once

// The two units that every prediction is made of. They are types so that a cost cannot be passed
// where a size is meant; arithmetic inside one unit reads as arithmetic.

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

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

/// An amount of memory; negative only as a difference. Arithmetic saturates at the limits of 64
/// bits instead of wrapping around, so that absurd sizes in a file stay absurdly large.
struct Bytes {
  std::int64_t value = 0;

  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }
  constexpr Bytes& operator-=(Bytes other) { return *this = *this - other; }
  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    std::int64_t sum = 0;
    return {__builtin_add_overflow(a.value, b.value, &sum) ? end(b.value < 0) : sum};
  }
  friend constexpr Bytes operator-(Bytes a, Bytes b) {
    std::int64_t difference = 0;
    return {__builtin_sub_overflow(a.value, b.value, &difference) ? end(b.value > 0) : difference};
  }
  friend constexpr Bytes operator*(Bytes a, std::int64_t factor) {
    std::int64_t product = 0;
    return {__builtin_mul_overflow(a.value, factor, &product) ? end((a.value < 0) != (factor < 0))
                                                              : product};
  }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;

 private:
  static constexpr std::int64_t end(bool below) {
    return below ? std::numeric_limits<std::int64_t>::min()
                 : std::numeric_limits<std::int64_t>::max();
  }
};

/// Converts to Bytes. Rounds up, so that a size never seems to fit when it does not, and saturates
/// at the largest 64-bit value.
inline Bytes whole_bytes(double bytes) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  return {bytes < static_cast<double>(most) ? static_cast<std::int64_t>(std::ceil(bytes)) : most};
}

}  // namespace pipewright::plan
