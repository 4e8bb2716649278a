#pragma once

namespace pipewright::test {

/// Runs the tests as the arguments say and returns what main() of a test program returns. A run
/// without a case and a case without an assertion are failures: both would pass on nothing.
int run_session(int argc, char** argv);

}  // namespace pipewright::test
