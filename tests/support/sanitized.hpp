// True if the tests run under a sanitizer, which makes them several times slower. Large grids then
// use fewer sizes but still take every path through the code.
#pragma once

namespace pipewright::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace pipewright::test
