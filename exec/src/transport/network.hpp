#pragma once

// Which of this machine's addresses others can reach.

#include <string>

namespace pipewright::exec {

/// The address of this machine from which packets go to that host: the one under which the other
/// ranks, which reach the same host, can reach this one. Throws InputError.
std::string local_address_towards(const std::string& host, int port);

}  // namespace pipewright::exec
