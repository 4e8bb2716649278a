#pragma once

// A prediction laid beside what happened, by kind of action: where the error comes from.

#include <map>
#include <string>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

/// What all actions of one kind take, on all ranks together.
struct KindTime {
  int count = 0;
  plan::Seconds total;
  plan::Seconds mean() const { return total * (1.0 / count); }
};

/// By kind: F, B, STEP, REDUCE_GRAD, … A transfer stands where it is felt, at its receiver, as
/// "RECV_F waiting" and "RECV_F moving" (`TransferSplit`). Sends are left out: predicted, a send
/// takes as long as its data move; measured, as long as they are handed over.
using KindTimes = std::map<std::string, KindTime>;
KindTimes time_per_kind(const plan::Timeline& timeline);

/// By kind: `predicted_count`, `measured_count`, the means `predicted_s` and `measured_s`, and
/// `error_percent`; null where there is none to give.
plan::Json kinds_json(const KindTimes& predicted, const KindTimes& measured);

/// A table for people: how often, mean time on both sides, error. A dash for what one side lacks.
std::string kind_table(const KindTimes& predicted, const KindTimes& measured);

}  // namespace pipewright::loop
