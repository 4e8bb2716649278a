#pragma once

// What a transfer takes while ranks compute, as in training, and what it costs them.

#include <vector>

#include "link_messages.hpp"
#include "pipewright/profiler/link_bench.hpp"

namespace pipewright::profiler {

/// What is measured: until the receiver has it, while the sender computes on; or for how long that
/// keeps the sender from computing, or a receiver that computes meanwhile.
enum class ComputingPart { Arrival, Sender, Receiver };

/// How long a rank computes beside a transfer of that size.
double computing_time(plan::Bytes size);

/// The routes of a pair that measures: of what is measured, and of words about it, which have
/// another size.
std::vector<LinkMessages> computing_routes(const LinkMessages& own);

/// One rank's part of the pair. Only the lower one sends what is measured; words of the higher one
/// begin each of `exchanges` on all routes, of which those after `warm_up` count, but for the last.
/// Seconds of each; none on the rank that only helps.
std::vector<double> while_computing(const LinkPlace& place, const LinkMessages& own,
                                    ComputingPart part, plan::Bytes size, int warm_up,
                                    int exchanges);

}  // namespace pipewright::profiler
