#pragma once

// What goes wrong on purpose. PIPEWRIGHT_STANDIN_NCCL=hang=RANK:COUNT;error=RANK:COUNT says it of
// every communicator: member RANK never ends its operation COUNT (from 0; what is launched
// together is one), and for `error` says so as an asynchronous error.

namespace pipewright::standin {

enum class Fault { None, Hang, Error };

/// Of operation `count` of member `rank`.
Fault fault_at(int rank, long count);

}  // namespace pipewright::standin
