#include "pipewright/sim/jitter/job_jitter.hpp"

#include <algorithm>

namespace pipewright::sim {
namespace {

/// Returns the stages of each rank in ascending order.
std::vector<std::vector<int>> stages_of_ranks(const Structure& structure) {
  std::vector<std::vector<int>> stages(structure.program().ranks.size());
  for (int event = 0; event < structure.size(); ++event) {
    const auto& own = structure.events()[event];
    std::vector<int>& of_rank = stages[static_cast<std::size_t>(own.rank)];
    const int stage = own.instruction->stage;
    const auto place = std::lower_bound(of_rank.begin(), of_rank.end(), stage);
    if (place == of_rank.end() || *place != stage)
      of_rank.insert(place, stage);
  }
  return stages;
}

}  // namespace

JobJitter::JobJitter(const Structure& structure, int copies, const Jitter& jitter, int block)
    : structure_(structure),
      copies_(copies),
      ranks_(static_cast<int>(structure.program().ranks.size())),
      alike_(std::min(copies, jitter.replicas())),
      size_(static_cast<std::size_t>(structure.size())),
      steps_{.pipelines = copies,
             .ranks = ranks_,
             .recorded = jitter.steps(),
             .together = jitter.together(),
             .block = block} {
  const auto stages = stages_of_ranks(structure);
  factors_.reserve(static_cast<std::size_t>(alike_) * size_);
  for (int copy = 0; copy < alike_; ++copy)
    for (int event = 0; event < structure.size(); ++event) {
      const auto& own = structure.events()[event];
      const std::vector<int>& of_rank = stages[static_cast<std::size_t>(own.rank)];
      const auto chunk = std::lower_bound(of_rank.begin(), of_rank.end(), own.instruction->stage);
      const WorkerPlace place{.replica = copy,
                              .rank = own.rank,
                              .ranks = ranks_,
                              .chunk = static_cast<int>(chunk - of_rank.begin())};
      factors_.push_back(jitter.factors(place, *own.instruction));
    }
}

std::vector<double> JobJitter::event_factors(std::uint64_t seed, std::uint64_t number) const {
  std::vector<int> steps(static_cast<std::size_t>(workers()));
  steps_.draw(seed, number, steps.data());
  std::vector<double> drawn;
  drawn.reserve(static_cast<std::size_t>(copies_) * size_);
  for (int copy = 0; copy < copies_; ++copy)
    for (int event = 0; event < structure_.size(); ++event) {
      const double* const own = factors(copy, event);
      const int at = worker(copy, structure_.events()[event].rank);
      drawn.push_back(own == nullptr ? 1.0 : own[steps[static_cast<std::size_t>(at)]]);
    }
  return drawn;
}

}  // namespace pipewright::sim
