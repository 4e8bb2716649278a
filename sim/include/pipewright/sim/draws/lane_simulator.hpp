#pragma once

// The engine for many draws of one Program: it times several at once, next to each other in memory,
// so that a node of the reduced graph is one line of arithmetic for all of them; and each pipeline
// of a job by itself, up to where they meet in a sum. A draw has the bits that it would have alone.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pipewright/sim/jitter/job_jitter.hpp"
#include "pipewright/sim/structure/durations.hpp"

namespace pipewright::sim {

/// Any thread may use it, with a memory of its own.
class LaneSimulator {
 public:
  /// What threads keep between calls.
  struct Memory;
  /// Of so many draws something, next to each other.
  static constexpr std::size_t lanes = 8;
  using Lanes = std::array<double, lanes>;

  /// All must outlive it but the costs, which it `can_time`.
  LaneSimulator(const Structure& structure, const StepCosts& costs, const JobJitter& jitter);

  /// Whether nobody minds when others do something: no link is shared, no transfer keeps its ranks
  /// from computing, no ranks slow each other down.
  static bool can_time(const Structure& structure, const StepCosts& costs);

  /// Draws of one call.
  std::size_t at_once() const { return groups_ * lanes; }
  /// The iterations of the draws from this number on, in seconds, as long as the memory is not used
  /// again.
  std::span<const double> iterations(std::uint64_t seed, std::uint64_t first, Memory& memory) const;

 private:
  struct Group;
  class Builder;

  struct Node {
    std::uint32_t first = 0, second = 0, own = 0;  // the places of the ends
    std::size_t factors = 0;                       // where its own stand
    std::size_t rank = 0;
    double held = 0;
    double latency = 0;  // from `second` on
    double behind = -1;  // nobody waits for this node, and it is over so much later; -1: somebody
    bool meets = false;  // all pipelines
  };

  std::size_t workers() const { return copies_ * ranks_; }
  void time_each(const Node& node, const Group& group) const;
  void time_together(const Node& node, const Group& group) const;

  /// Of small jobs several groups of draws go on at once: what is read of a node serves all.
  static constexpr std::size_t most_columns = 64;

  const JobJitter& jitter_;
  const std::size_t copies_, alike_, ranks_, groups_;
  std::vector<Node> nodes_;
  std::vector<const double*> factors_;  // by node and, of pipelines that differ, pipeline
  std::vector<std::size_t> like_;       // by pipeline: which of these
  std::size_t places_ = 1;              // the first is that of the start
};

struct LaneSimulator::Memory {
  std::vector<Lanes> ends{};  // by place, group and pipeline
  std::vector<int> steps{};   // by group, worker and draw
  std::vector<Lanes> last{};  // by group
};

}  // namespace pipewright::sim
