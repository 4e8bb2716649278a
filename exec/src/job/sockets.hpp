#pragma once

// TCP sockets of the job's store.

#include <string>

#include "file_descriptor.hpp"

namespace pipewright::exec {

/// Listens on a port of `host`; "" stands for all addresses of this machine. Port 0 chooses any
/// free port. Throws std::runtime_error.
FileDescriptor listen_on(const std::string& host, int port);

/// Returns a connection to the first address of `host` that accepts one, or no socket.
FileDescriptor connect_to(const std::string& host, int port);

/// Returns the port on which a socket listens.
int port_of(const FileDescriptor& listening);

/// Sends small messages without a delay.
void disable_nagle(const FileDescriptor& socket);

}  // namespace pipewright::exec
