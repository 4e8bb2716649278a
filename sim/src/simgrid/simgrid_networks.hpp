#pragma once

// Networks whose transfers are timed by SimGrid.

#include <filesystem>
#include <memory>

#include "network/network.hpp"

namespace pipewright::sim {

/// Returns the cluster's network. One per process: SimGrid has one engine, which cannot be started
/// twice.
std::unique_ptr<Network> network_of(const plan::Cluster& cluster, const Traffic& traffic);
/// Throws InputError for a file that cannot be used.
std::unique_ptr<Network> network_of(const std::filesystem::path& file, const Traffic& traffic);

}  // namespace pipewright::sim
