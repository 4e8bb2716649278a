#pragma once

// A measured run in the form of an engine's answer (Times), so that a measurement is explained by
// the same rules as a prediction, for example why a rank was idle.

#include <cstddef>
#include <vector>

#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// Returns the span of each instruction of the Program, as an index into the Timeline's spans.
/// Spans match by rank and name; several spans of one name match in order of time. Throws
/// InputError that names the spans that the Timeline lacks or has in addition to the Program.
std::vector<std::size_t> spans_of(const Structure& structure, const plan::Timeline& measured);

/// Returns when every instruction of the Program ran, according to the Timeline. A transfer has
/// arrived when its receiver had it; a collective begins when all its members have reached it.
/// `spans` is the result of `spans_of`; the overload without it calls `spans_of` and throws as that
/// does.
Times times_of(const Structure& structure, const plan::Timeline& measured,
               const std::vector<std::size_t>& spans);
Times times_of(const Structure& structure, const plan::Timeline& measured);

/// Returns true if the rank of this receive waited for its data. The arrival of data is not
/// measured, so data that were sent long before the receive was posted count as arrived by then.
bool waited_for(const Structure& structure, const Times& measured, int receive);

/// Returns the Timeline with the causes of its idle time. Throws as `spans_of`.
plan::Timeline with_idle_causes(const Structure& structure, plan::Timeline measured);

/// Returns the `critical_path` of times that `times_of` returned. Data that no rank waited for
/// delay no rank.
std::vector<int> measured_critical_path(const Structure& structure, Times measured);

}  // namespace pipewright::sim
