#pragma once

// Injected faults. PIPEWRIGHT_STANDIN_NCCL=hang=RANK:COUNT;error=RANK:COUNT applies to every
// communicator: member RANK never ends its operation COUNT (from 0; operations launched together
// count as one), and `error` also reports an asynchronous error.

namespace pipewright::standin {

enum class Fault { None, Hang, Error };

/// Returns the fault of operation `count` of member `rank`.
Fault fault_at(int rank, long count);

}  // namespace pipewright::standin
