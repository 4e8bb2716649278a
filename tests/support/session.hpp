// What main() of a test program does; it defines CATCH_CONFIG_RUNNER before it includes this. A run
// without a case and a case without an assertion are failures: both would pass on nothing.
#pragma once

#include "support/catch.hpp"
#include "support/skip.hpp"

namespace pipewright::test {

inline int run_session(int argc, char** argv) {
  Catch::Session session;
  if (const int wrong = session.applyCommandLine(argc, argv); wrong != 0)
    return wrong;
  auto& config = session.configData();
#if CATCH_VERSION_MAJOR < 3
  constexpr int demanded = Catch::WarnAbout::NoAssertions | Catch::WarnAbout::NoTests;
#else
  constexpr int demanded = Catch::WarnAbout::NoAssertions;  // it fails without tests by itself
#endif
  config.warnings = static_cast<Catch::WarnAbout::What>(config.warnings | demanded);
  return exit_code_of(session.run());
}

}  // namespace pipewright::test
