#pragma once

// A measured run as the simulator's engines answer: so what is said of a prediction, such as why a
// rank was idle, is said of a measurement by the same rules.

#include <cstddef>
#include <vector>

#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// The span of each instruction of the Program, as a place in the Timeline's spans: that of its
/// rank and name, and several of one name in the order of time. Throws InputError that names what
/// the Timeline lacks or has beyond the Program.
std::vector<std::size_t> spans_of(const Structure& structure, const plan::Timeline& measured);

/// When every instruction of the Program ran, as a Timeline has it. A transfer has arrived when its
/// receiver had it; a collective begins when all its members have reached it. `spans` are those of
/// `spans_of`, for who has them; the other throws as that does.
Times times_of(const Structure& structure, const plan::Timeline& measured,
               const std::vector<std::size_t>& spans);
Times times_of(const Structure& structure, const plan::Timeline& measured);

/// Whether the rank of this receive waited for the data: when it had arrived is not measured, so
/// what was sent long before its receive was there is taken to have been there.
bool waited_for(const Structure& structure, const Times& measured, int receive);

/// The Timeline with the causes of its idle time. Throws as `spans_of`.
plan::Timeline with_idle_causes(const Structure& structure, plan::Timeline measured);

/// As `critical_path`, of what `times_of` gives: what nobody waited for has held up nobody.
std::vector<int> measured_critical_path(const Structure& structure, Times measured);

}  // namespace pipewright::sim
