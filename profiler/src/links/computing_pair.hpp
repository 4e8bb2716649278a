#pragma once

// What a transfer takes while ranks compute, as in training, and what it costs them.

#include <vector>

#include "link_messages.hpp"
#include "pipewright/profiler/links/link_bench.hpp"

namespace pipewright::profiler {

/// What is measured: until the receiver has it, while the sender computes on; or for how long that
/// keeps the sender from computing, or a receiver that computes meanwhile.
enum class ComputingPart { Arrival, Sender, Receiver };

/// The routes of a pair that measures: of what is measured, and of words about it, which have
/// another size.
std::vector<LinkMessages> computing_routes(const LinkMessages& own);

/// One rank's part of the pair, which computes for `computing_s` at a time: longer than a transfer
/// takes. Only the lower one sends what is measured; words of the higher one
/// begin each of `exchanges` on all routes, of which those after `warm_up` count, but for the last.
/// Seconds of each; none on the rank that only helps.
std::vector<double> while_computing(const LinkPlace& place, const LinkMessages& own,
                                    ComputingPart part, plan::Bytes size, double computing_s,
                                    int warm_up, int exchanges);

}  // namespace pipewright::profiler
