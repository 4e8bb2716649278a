#include "pipewright/sim/jitter/jitter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "pipewright/plan/error.hpp"

namespace pipewright::sim {
namespace {

using Kind = plan::InstructionKind;

/// Inserts a number that is not there yet, in ascending order.
void insert_into(std::vector<int>& numbers, int number) {
  const auto place = std::lower_bound(numbers.begin(), numbers.end(), number);
  if (place == numbers.end() || *place != number)
    numbers.insert(place, number);
}

/// Returns the index of a stage among those of its rank.
int chunk_of(const std::vector<int>& stages, int stage) {
  return static_cast<int>(std::lower_bound(stages.begin(), stages.end(), stage) - stages.begin());
}

}  // namespace

Jitter::Jitter(const models::RecordedSteps& record)
    : steps_(static_cast<int>(record.steps())), together_(together_in(record)) {
  if (steps_ < 2)
    throw plan::InputError(
        fmt::format("{} step is recorded: at least two are needed to see how steps vary", steps_));
  count_workers(record);
  if (series_.empty())
    throw plan::InputError(
        "the recorded operations take no time in any step: there is nothing to sample");
}

void Jitter::count_workers(const models::RecordedSteps& record) {
  std::map<int, int> numbers;  // of the recorded pipelines, from 0 on
  for (const models::RecordedOperation& operation : record.operations)
    numbers.emplace(operation.replica, 0);
  replicas_ = 0;
  for (auto& [replica, number] : numbers)
    number = replicas_++;
  for (const models::RecordedOperation& operation : record.operations) {
    ranks_ = std::max(ranks_, operation.rank + 1);
    insert_into(stages_of_[operation.rank], operation.instruction.stage);
    insert_into(replicas_of_[operation.rank], numbers[operation.replica]);
  }
  add_factors(record, numbers);
}

void Jitter::add_factors(const models::RecordedSteps& record, const std::map<int, int>& numbers) {
  struct Sum {
    double seconds = 0;
    double count = 0;
  };
  std::map<std::pair<int, Kind>, Sum> sums;  // by stage, over all pipelines
  for (const models::RecordedOperation& operation : record.operations) {
    Sum& sum = sums[{operation.instruction.stage, operation.instruction.kind}];
    for (const double seconds : operation.seconds)
      sum.seconds += seconds;
    sum.count += static_cast<double>(operation.seconds.size());
  }
  // Operations are in the order of microbatches, and so are the factors.
  for (const models::RecordedOperation& operation : record.operations) {
    const plan::Instruction& i = operation.instruction;
    const Sum& sum = sums[{i.stage, i.kind}];
    if (!(sum.seconds > 0))
      continue;
    std::vector<double> factors;
    for (const double seconds : operation.seconds)
      factors.push_back(seconds * sum.count / sum.seconds);
    factors.insert(factors.end(), factors.begin(), factors.begin() + steps_);
    const int chunk = chunk_of(stages_of_[operation.rank], i.stage);
    series_[{numbers.at(operation.replica), operation.rank, chunk, i.kind}].push_back(
        std::move(factors));
  }
}

/// Returns the recorded rank that stands for `place`: the first and last ranks map to each other,
/// and a rank without a record maps to the nearest recorded rank, the first of two equally near
/// ones.
int Jitter::recorded_rank(const WorkerPlace& place) const {
  std::int64_t rank = std::min(place.rank, ranks_ - 1);
  if (place.ranks != ranks_ && place.ranks > 1)
    rank =
        (std::int64_t{2} * place.rank * (ranks_ - 1) + place.ranks - 1) / (2 * (place.ranks - 1));
  const auto above = stages_of_.lower_bound(static_cast<int>(rank));
  if (above == stages_of_.begin())
    return above->first;
  const auto below = std::prev(above);
  return above == stages_of_.end() || rank - below->first <= above->first - rank ? below->first
                                                                                 : above->first;
}

/// Returns the replica itself, or another one in which the rank was recorded.
int Jitter::recorded_replica(int replica, int rank) const {
  const std::vector<int>& known = replicas_of_.at(rank);
  const int own = replica % replicas_;
  return std::binary_search(known.begin(), known.end(), own)
             ? own
             : known[static_cast<std::size_t>(own) % known.size()];
}

const double* Jitter::factors(const WorkerPlace& place,
                              const plan::Instruction& instruction) const {
  const int rank = recorded_rank(place), replica = recorded_replica(place.replica, rank);
  const int chunk = place.chunk % static_cast<int>(stages_of_.at(rank).size());
  auto found = series_.find({replica, rank, chunk, instruction.kind});
  for (const std::optional<Kind> like : plan::traits_of(instruction.kind).varies_like)
    if (found == series_.end() && like)
      found = series_.find({replica, rank, chunk, *like});
  if (found == series_.end())
    return nullptr;
  const Series& series = found->second;
  const auto microbatch = static_cast<std::size_t>(std::max(0, instruction.microbatch));
  const std::size_t later = microbatch / series.size() % static_cast<std::size_t>(steps_);
  return series[microbatch % series.size()].data() + later;
}

}  // namespace pipewright::sim
