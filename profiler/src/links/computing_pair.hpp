#pragma once

// Measures how long a transfer takes while ranks compute, as in training, and how much compute time
// it costs them.

#include <vector>

#include "link_messages.hpp"
#include "pipewright/profiler/links/link_bench.hpp"

namespace pipewright::profiler {

/// The measured quantity: the time until the receiver has the data, while the sender keeps
/// computing; or the compute time that the transfer costs the sender, or a receiver that computes
/// meanwhile.
enum class ComputingPart { Arrival, Sender, Receiver };

/// Returns the routes of a measured pair: one for the data, and one for control messages, which
/// have another size.
std::vector<LinkMessages> computing_routes(const LinkMessages& own);

/// Runs one rank's part of the measurement. The ranks compute for `computing_s` at a time, longer
/// than a transfer takes. Only the lower rank sends the measured data; control messages of the
/// higher rank begin each of `exchanges` on all routes. The exchanges after `warm_up` count, except
/// for the last. Returns the seconds of each; empty on the rank that only helps.
std::vector<double> while_computing(const LinkPlace& place, const LinkMessages& own,
                                    ComputingPart part, plan::Bytes size, double computing_s,
                                    int warm_up, int exchanges);

}  // namespace pipewright::profiler
