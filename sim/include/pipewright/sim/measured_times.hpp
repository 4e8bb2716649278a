#pragma once

// A measured run as the simulator's engines answer: so what is said of a prediction, such as why a
// rank was idle, is said of a measurement by the same rules.

#include "pipewright/sim/times.hpp"

namespace pipewright::sim {

/// When every instruction of the Program ran, as a Timeline has it. A transfer has arrived when its
/// receiver had it; a collective begins when all its members have reached it. Spans of one action
/// are taken in the order of time. Throws InputError that names what the Timeline lacks or has
/// beyond the Program.
Times times_of(const Structure& structure, const plan::Timeline& measured);

/// The Timeline with the causes of its idle time. Throws as `times_of`.
plan::Timeline with_idle_causes(const Structure& structure, plan::Timeline measured);

/// As `critical_path`, of what `times_of` gives: when data had arrived is not measured, so what was
/// sent long before its receive was there is taken to have held up nobody.
std::vector<int> measured_critical_path(const Structure& structure, Times measured);

}  // namespace pipewright::sim
