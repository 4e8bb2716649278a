#pragma once

// The environment variables and open files that a launcher forwards to its ranks. A file's number
// is the value of a variable.

#include "file_descriptor.hpp"

namespace pipewright::exec {

/// The job's secret. Only a process's own user can read its environment.
constexpr const char* variable_of_secret = "PIPEWRIGHT_JOB_SECRET";

/// The number of ranks in the job; the launcher's first processes become these ranks. Default: all
/// processes are ranks.
constexpr const char* variable_of_ranks = "PIPEWRIGHT_JOB_RANKS";

/// The socket on which rank 0 serves the job's store.
constexpr const char* variable_of_socket = "PIPEWRIGHT_STORE_SOCKET";

/// An end of a pipe that a rank keeps open until it has met the others (rendezvous).
constexpr const char* variable_of_rendezvous = "PIPEWRIGHT_RENDEZVOUS";

/// Leaves `file` open for the program that a child process is about to become.
void forward(const FileDescriptor& file, const char* variable);

/// Returns the forwarded file, once; the programs that this process starts do not inherit it.
/// Empty where no launcher has forwarded one.
FileDescriptor forwarded(const char* variable);

}  // namespace pipewright::exec
