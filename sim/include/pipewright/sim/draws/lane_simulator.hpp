#pragma once

// The engine for many samples of one Program. It times several samples at once, adjacent in memory,
// so that each node of the reduced graph is one vector operation for all of them. It times each
// pipeline of a job separately, up to the collectives that join them. A sample has the same bits as
// if it were timed alone.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pipewright/sim/jitter/job_jitter.hpp"
#include "pipewright/sim/structure/durations.hpp"

namespace pipewright::sim {

/// Times the samples. Any thread may use it, with its own Memory.
class LaneSimulator {
 public:
  /// The working memory that a thread keeps between calls.
  struct Memory;
  /// Number of samples that are adjacent in memory.
  static constexpr std::size_t lanes = 8;
  using Lanes = std::array<double, lanes>;

  /// Constructs the engine for costs that it `can_time`. All arguments except the costs must
  /// outlive it.
  LaneSimulator(const Structure& structure, const StepCosts& costs, const JobJitter& jitter);

  /// Returns true if no rank affects another's speed: no link is shared, no transfer keeps its
  /// ranks from computing, and no ranks slow each other down.
  static bool can_time(const Structure& structure, const StepCosts& costs);

  /// Returns the number of samples per call.
  std::size_t at_once() const { return groups_ * lanes; }
  /// Returns the iterations of the samples that begin at number `first`, in seconds. Valid until
  /// `memory` is used again.
  std::span<const double> iterations(std::uint64_t seed, std::uint64_t first, Memory& memory) const;

 private:
  struct Group;
  class Builder;

  struct Node {
    std::uint32_t first = 0, second = 0, own = 0;  // the places of the ends
    std::size_t factors = 0;                       // index of its factors
    std::size_t rank = 0;
    double held = 0;
    double latency = 0;  // added to `second`
    double behind = -1;  // if no node waits for this one: seconds from its end to its completion;
                         // -1: some node waits
    bool meets = false;  // all pipelines meet in it
  };

  std::size_t workers() const { return copies_ * ranks_; }
  void time_each(const Node& node, const Group& group) const;
  void time_together(const Node& node, const Group& group) const;

  /// Small jobs time several groups of samples together, so that each node is read once for all.
  static constexpr std::size_t most_columns = 64;

  const JobJitter& jitter_;
  const std::size_t copies_, alike_, ranks_, groups_;
  std::vector<Node> nodes_;
  std::vector<const double*> factors_;  // by node and, for pipelines that differ, pipeline
  std::vector<std::size_t> like_;       // by pipeline: index of its factors
  std::size_t places_ = 1;              // the first one belongs to the start
};

struct LaneSimulator::Memory {
  std::vector<Lanes> ends{};  // by place, group and pipeline
  std::vector<int> steps{};   // by group, worker and draw
  std::vector<Lanes> last{};  // by group
};

}  // namespace pipewright::sim
