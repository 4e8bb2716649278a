// Skips tests that cannot run here because a device, a file or a program is absent, and reports
// them. The test program lists each such case with its reason, counts them, and exits with 77,
// ctest's code for "skipped", if all cases that it should run were skipped.
#pragma once

#include <string>

namespace pipewright::test {

/// Ends the test case and counts it as skipped. Call only on the thread that runs the case.
[[noreturn]] void skip(const std::string& reason);

/// Continues the case, which counts as run, but lists a part of it as skipped.
void skip_part(const std::string& reason);

/// Returns the exit code of a test program, from the number of failed cases that Catch2's session
/// returns.
int exit_code_of(int failed_cases);

}  // namespace pipewright::test
