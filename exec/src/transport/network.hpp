#pragma once

// Finds the address of this machine that other ranks can reach.

#include <string>

namespace pipewright::exec {

/// Returns the address of this machine from which packets to that host are sent. Other ranks, which
/// reach the same host, can reach this machine under it. Throws InputError.
std::string local_address_towards(const std::string& host, int port);

}  // namespace pipewright::exec
