#pragma once

// Access to the stand-in for CUDA's runtime, if it is loaded (tests/standin).

#include <dlfcn.h>

#include <array>
#include <string>

#include "standin/standin.hpp"
#include "support/skip.hpp"

namespace pipewright::test {

/// Returns the errors found since the last call. Skips the test case if the stand-in is not loaded.
inline std::string reports_of_standin() {
  const auto take = reinterpret_cast<decltype(&pipewright_standin_take_reports)>(
      dlsym(RTLD_DEFAULT, "pipewright_standin_take_reports"));
  if (take == nullptr)
    skip("only the stand-in for CUDA's runtime tells of this");
  std::array<char, 16384> text{};
  take(text.data(), text.size());
  return text.data();
}

}  // namespace pipewright::test
