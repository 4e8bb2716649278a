#pragma once

// How a process reaches the store in which the ranks of its job meet.

#include <chrono>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "pipewright/exec/job/environment.hpp"
#include "store_server.hpp"

namespace pipewright::exec {

/// For messages.
std::string place_of(const JobEnvironment& environment);

/// What a process has to do before it talks to others that may die.
void prepare_process();

/// On the rank that hosts the store of a job with a secret; null on others. Throws JobFailure, as
/// do the two below.
std::shared_ptr<StoreServer> opened_server(const JobEnvironment& environment,
                                           std::chrono::milliseconds timeout);

/// Where the launcher hosts a store and the job has a secret: its own, as `own_port` of rank 0
/// says.
void move_to_own_store(JobEnvironment& environment, std::chrono::milliseconds timeout,
                       int own_port);

/// `first`: rank 0 opens the store with it, if it is the one that hosts it.
c10::intrusive_ptr<c10d::Store> connect(const JobEnvironment& environment,
                                        std::chrono::milliseconds timeout,
                                        const std::shared_ptr<StoreServer>& server, bool first);

}  // namespace pipewright::exec
