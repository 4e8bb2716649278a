#pragma once

// Compares a predicted and a measured timeline by kind of action, which shows where the error comes
// from.

#include <map>
#include <string>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

/// The number and the total time of all actions of one kind, over all ranks.
struct KindTime {
  int count = 0;
  plan::Seconds total;
  plan::Seconds mean() const { return total * (1.0 / count); }
};

/// Times by kind of action: F, B, STEP, REDUCE_GRAD, … A transfer is counted at its receiver, where
/// it costs time, as "RECV_F waiting" and "RECV_F moving" (`TransferSplit`). Sends are left out,
/// because a predicted send lasts until its data have arrived, whereas a measured send lasts only
/// until the transport has accepted the data.
using KindTimes = std::map<std::string, KindTime>;
KindTimes time_per_kind(const plan::Timeline& timeline);

/// Returns, by kind, `predicted_count`, `measured_count`, the means `predicted_s` and `measured_s`,
/// and `error_percent`. A value that is undefined is null.
plan::Json kinds_json(const KindTimes& predicted, const KindTimes& measured);

/// Returns a table for people with count, predicted and measured mean time, and error. A dash
/// stands for a missing value.
std::string kind_table(const KindTimes& predicted, const KindTimes& measured);

}  // namespace pipewright::loop
