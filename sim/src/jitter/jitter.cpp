#include "pipewright/sim/jitter/jitter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipewright/plan/error.hpp"

namespace pipewright::sim {
namespace {

using Kind = plan::InstructionKind;

/// Kinds that vary alike, the nearest first.
std::vector<Kind> kinds_like(Kind kind) {
  switch (kind) {
    case Kind::Backward:
      return {kind, Kind::InputGradient, Kind::WeightGradient};
    case Kind::InputGradient:
    case Kind::WeightGradient:
      return {kind, Kind::Backward};
    case Kind::Recompute:
      return {kind, Kind::Forward};
    case Kind::ReduceGradients:
      return {kind, Kind::ScatterGradients};
    case Kind::ScatterGradients:
      return {kind, Kind::ReduceGradients};
    case Kind::GatherParameters:
      return {kind, Kind::Unshard};
    case Kind::Unshard:
      return {kind, Kind::GatherParameters};
    case Kind::Load:
    case Kind::Forward:
    case Kind::SendActivation:
    case Kind::ReceiveActivation:
    case Kind::SendGradient:
    case Kind::ReceiveGradient:
    case Kind::ScatterMicrobatch:
    case Kind::ReduceTied:
    case Kind::NormGradients:
    case Kind::OptimizerStep:
    case Kind::ShareLoss:
    case Kind::Reshard:
      return {kind};
  }
  return {kind};
}

/// Where a stage stands among those of its rank.
int chunk_of(const std::vector<int>& stages, int stage) {
  return static_cast<int>(std::lower_bound(stages.begin(), stages.end(), stage) - stages.begin());
}

}  // namespace

Jitter::Jitter(const plan::RecordedSteps& record)
    : steps_(static_cast<int>(record.steps())), together_(together_in(record)) {
  if (steps_ < 2)
    throw plan::InputError(fmt::format(
        "{} step is recorded: how steps differ from each other shows in two or more", steps_));
  count_workers(record);
  add_factors(record);
  if (series_.empty())
    throw plan::InputError("what is recorded takes no time in any step: there is nothing to draw");
}

void Jitter::count_workers(const plan::RecordedSteps& record) {
  for (const plan::RecordedOperation& operation : record.operations) {
    replicas_ = std::max(replicas_, operation.replica + 1);
    ranks_ = std::max(ranks_, operation.rank + 1);
    std::vector<int>& stages = stages_of_[operation.rank];
    const int stage = operation.instruction.stage;
    const auto place = std::lower_bound(stages.begin(), stages.end(), stage);
    if (place == stages.end() || *place != stage)
      stages.insert(place, stage);
  }
}

void Jitter::add_factors(const plan::RecordedSteps& record) {
  struct Sum {
    double seconds = 0;
    double count = 0;
  };
  std::map<std::pair<int, Kind>, Sum> sums;  // by stage, over all pipelines
  for (const plan::RecordedOperation& operation : record.operations) {
    Sum& sum = sums[{operation.instruction.stage, operation.instruction.kind}];
    for (const double seconds : operation.seconds)
      sum.seconds += seconds;
    sum.count += static_cast<double>(operation.seconds.size());
  }
  // In the order of microbatches, as the operations are.
  for (const plan::RecordedOperation& operation : record.operations) {
    const plan::Instruction& i = operation.instruction;
    const Sum& sum = sums[{i.stage, i.kind}];
    if (!(sum.seconds > 0))
      continue;
    std::vector<double> factors;
    for (const double seconds : operation.seconds)
      factors.push_back(seconds * sum.count / sum.seconds);
    factors.insert(factors.end(), factors.begin(), factors.begin() + steps_);
    const int chunk = chunk_of(stages_of_[operation.rank], i.stage);
    series_[{operation.replica, operation.rank, chunk, i.kind}].push_back(std::move(factors));
  }
}

/// The first and the last stand for the first and the last.
int Jitter::recorded_rank(const WorkerPlace& place) const {
  if (place.ranks == ranks_ || place.ranks < 2)
    return std::min(place.rank, ranks_ - 1);
  return (2 * place.rank * (ranks_ - 1) + place.ranks - 1) / (2 * (place.ranks - 1));
}

const double* Jitter::factors(const WorkerPlace& place,
                              const plan::Instruction& instruction) const {
  const int replica = place.replica % replicas_, rank = recorded_rank(place);
  const auto stages = stages_of_.find(rank);
  if (stages == stages_of_.end())
    return nullptr;
  const int chunk = place.chunk % static_cast<int>(stages->second.size());
  for (const Kind kind : kinds_like(instruction.kind)) {
    const auto found = series_.find({replica, rank, chunk, kind});
    if (found == series_.end())
      continue;
    const Series& series = found->second;
    const auto microbatch = static_cast<std::size_t>(std::max(0, instruction.microbatch));
    const std::size_t later = microbatch / series.size() % static_cast<std::size_t>(steps_);
    return series[microbatch % series.size()].data() + later;
  }
  return nullptr;
}

}  // namespace pipewright::sim
