// The only source with Catch2's runner, which takes 10 s to compile.
#define CATCH_CONFIG_RUNNER
#include "support/session.hpp"

#include "support/catch.hpp"
#include "support/skip.hpp"

namespace pipewright::test {

int run_session(int argc, char** argv) {
  Catch::Session session;
  if (const int wrong = session.applyCommandLine(argc, argv); wrong != 0)
    return wrong;
  auto& config = session.configData();
#if CATCH_VERSION_MAJOR < 3
  constexpr int demanded = Catch::WarnAbout::NoAssertions | Catch::WarnAbout::NoTests;
#else
  constexpr int demanded = Catch::WarnAbout::NoAssertions;  // a run without tests fails in any case
#endif
  config.warnings = static_cast<Catch::WarnAbout::What>(config.warnings | demanded);
  return exit_code_of(session.run());
}

}  // namespace pipewright::test
