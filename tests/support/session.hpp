#pragma once

namespace pipewright::test {

/// Runs the tests as the arguments specify and returns the exit code of main(). A run without test
/// cases and a case without assertions are failures, because both would pass on nothing.
int run_session(int argc, char** argv);

}  // namespace pipewright::test
