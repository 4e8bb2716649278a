#pragma once

// What each rank holds over time and whose it is, of what the timeline shows.

#include <memory>
#include <vector>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/sim/memory/memory.hpp"

namespace pipewright::gui {

class MemoryPicture {
 public:
  MemoryPicture() = default;
  /// The picture of a run: its owners as predicted, and what was measured.
  explicit MemoryPicture(const Workspace& workspace);

  int ranks() const { return ranks_; }
  double length() const { return length_; }
  plan::Bytes cap() const { return cap_; }  // of each rank; 0: none is known
  bool is_measured() const { return is_measured_; }
  /// The owners of each rank; empty where no plan is known.
  const std::vector<std::vector<sim::OwnersPoint>>& owners() const { return owners_; }
  /// What was sampled of a rank, of a run or a foreign trace; empty: nothing was.
  std::span<const plan::EventTable::Memory> samples(int rank) const;
  /// The most that a rank holds: of its owners, or else of its samples.
  sim::MemoryPeak peak(int rank) const;
  sim::MemoryPeak measured_peak(int rank) const;
  /// The largest of all that is drawn.
  std::int64_t highest() const;
  /// Who holds what, the largest first; empty where no plan is known.
  std::vector<sim::Holder> holders(int rank, double time) const;

 private:
  /// What the owners are found by.
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
