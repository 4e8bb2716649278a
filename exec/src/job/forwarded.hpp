#pragma once

// What a launcher forwards to its ranks: words in their environment, and open files whose numbers
// stand there.

#include "file_descriptor.hpp"

namespace pipewright::exec {

/// The job's secret. Only a process's own user can read its environment.
constexpr const char* variable_of_secret = "PIPEWRIGHT_JOB_SECRET";

/// The launcher's first processes, this many, are the job's ranks; not set: all.
constexpr const char* variable_of_ranks = "PIPEWRIGHT_JOB_RANKS";

/// The socket on which rank 0 serves the job's store.
constexpr const char* variable_of_socket = "PIPEWRIGHT_STORE_SOCKET";

/// An end of a pipe that a rank keeps open until it has met the others (rendezvous).
constexpr const char* variable_of_rendezvous = "PIPEWRIGHT_RENDEZVOUS";

/// In a child that becomes a rank: leaves `file` open for its program.
void forward(const FileDescriptor& file, const char* variable);

/// Returns the forwarded file, once; the programs that this process starts do not inherit it.
/// Empty where no launcher has forwarded one.
FileDescriptor forwarded(const char* variable);

}  // namespace pipewright::exec
