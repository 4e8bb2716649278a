#pragma once

// Connects a process to the store in which the ranks of its job meet: c10d's TCPStore, or our own
// store if the job has a secret.

#include <chrono>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "pipewright/exec/job/environment.hpp"
#include "store_server.hpp"

namespace pipewright::exec {

/// Returns the store's host and port, for messages.
std::string place_of(const JobEnvironment& environment);

/// Sets up signals and logs of a process that communicates with processes that may die.
void prepare_process();

/// Opens the store of a job with a secret on rank 0; returns null on other ranks. Throws
/// JobFailure, as the two functions below do.
std::shared_ptr<StoreServer> opened_server(const JobEnvironment& environment,
                                           std::chrono::milliseconds timeout);

/// Makes all ranks use the job's own store if the job has a secret but the launcher hosts a store.
/// Rank 0 publishes the port of the job's own store in the launcher's.
void move_to_own_store(JobEnvironment& environment, std::chrono::milliseconds timeout,
                       int own_port);

/// Connects to the job's store. With `first`, rank 0 also opens the store, unless the launcher or
/// `server` hosts it.
c10::intrusive_ptr<c10d::Store> connect(const JobEnvironment& environment,
                                        std::chrono::milliseconds timeout,
                                        const std::shared_ptr<StoreServer>& server, bool first);

}  // namespace pipewright::exec
