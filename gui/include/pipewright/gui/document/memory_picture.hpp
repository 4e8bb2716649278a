#pragma once

// The memory of each rank over time and its owners, for the timeline that is shown.

#include <memory>
#include <vector>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/sim/memory/memory.hpp"

namespace pipewright::gui {

class MemoryPicture {
 public:
  MemoryPicture() = default;
  /// For a run, shows the owners as predicted, and the measured samples.
  explicit MemoryPicture(const Workspace& workspace);

  int ranks() const { return ranks_; }
  double length() const { return length_; }
  plan::Bytes cap() const { return cap_; }  // of each rank; 0: unknown
  bool is_measured() const { return is_measured_; }
  /// Returns the owners of each rank; empty if no plan is known.
  const std::vector<std::vector<sim::OwnersPoint>>& owners() const { return owners_; }
  /// Returns the memory samples of a rank in a run or a foreign trace; empty if none were recorded.
  std::span<const plan::EventTable::Memory> samples(int rank) const;
  /// Returns the peak memory of a rank, from its owners if known, otherwise from its samples.
  sim::MemoryPeak peak(int rank) const;
  sim::MemoryPeak measured_peak(int rank) const;
  /// Returns the largest value that is drawn.
  std::int64_t highest() const;
  /// Returns the owners and their sizes, the largest first; empty if no plan is known.
  std::vector<sim::Holder> holders(int rank, double time) const;

 private:
  /// The data from which the owners are computed.
  struct Timed {
    std::shared_ptr<const sim::Structure> structure;
    sim::StepCosts costs;
    sim::Times times;
    sim::Holding holding;
  };

  int ranks_ = 0;
  double length_ = 0;
  plan::Bytes cap_;
  bool is_measured_ = false;
  std::shared_ptr<const Timed> timed_;
  std::vector<std::vector<sim::OwnersPoint>> owners_;
  std::shared_ptr<PaintedTable> table_;
};

}  // namespace pipewright::gui
