// What a test cannot try here, because a device, a file or a program is absent, is skipped aloud:
// the test program lists each such case with its reason, counts them, and ends with 77, which is
// ctest's sign for "skipped", where every case that it was to run was skipped.
#pragma once

#include <string>

namespace pipewright::test {

/// Ends the test case, which is then counted as skipped. Only on the thread that runs the case.
[[noreturn]] void skip(const std::string& reason);

/// The case goes on and is counted as run, but a part of what it claims is listed as skipped.
void skip_part(const std::string& reason);

/// What a test program ends with, from the number of failed cases that Catch2's session tells.
int exit_code_of(int failed_cases);

}  // namespace pipewright::test
