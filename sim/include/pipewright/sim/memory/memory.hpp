#pragma once

// The memory model: how much memory every rank holds over time, its peak, and what holds it. The
// rules are those of docs/time-and-memory.md.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pipewright/plan/costs/training_memory.hpp"
#include "pipewright/sim/structure/step_costs.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// The memory that a rank holds from `time` (seconds) until its next point.
struct MemoryPoint {
  double time = 0;
  std::int64_t held = 0;  // bytes
};

/// The first time at which a rank's memory is highest.
struct MemoryPeak {
  double time = 0;  // seconds
  plan::Bytes held;
};

struct MemoryCurves {
  std::vector<MemoryPeak> peaks;  // by rank

  /// Returns a rank's points in order of time: first the standing memory at time 0, then one point
  /// for each later change. Several changes at one time are one point.
  std::span<const MemoryPoint> of(int rank) const {
    const auto at = static_cast<std::size_t>(rank);
    return {points.data() + begins[at], counts[at]};
  }

  /// Returns the peak of the rank that holds most.
  plan::Bytes highest_peak() const;

  std::vector<MemoryPoint> points;  // of all ranks; `of` returns those of one
  std::vector<std::size_t> begins;  // by rank, in `points`
  std::vector<std::size_t> counts;
};

/// The executor's options that decide how much memory a rank holds.
struct Holding {
  plan::TensorTransfer local_transfer = plan::TensorTransfer::Reference;
  /// Number of equal groups, in the order of microbatches, in which a replica of a stage
  /// accumulates its gradients; a gradient that is computed before its turn is set aside. 0: each
  /// is added as soon as it is computed.
  int gradient_groups = 0;
  /// True if a stage's work on a microbatch is captured once for each of its slots and replayed,
  /// with inputs and outputs in permanent memory (training.cuda_graphs).
  bool captures = false;
  friend bool operator==(const Holding&, const Holding&) = default;
};

struct Holder {
  std::string name;  // "parameters", "activations 2F5", "receive buffer 1RECV_F2", …
  plan::Bytes bytes;
  friend bool operator==(const Holder&, const Holder&) = default;
};

/// The owner of bytes, for a chart of all of them over time.
enum class Owner {
  Parameters,  // older weights included
  Gradients,   // including those set aside
  OptimizerState,
  Activations,
  Inputs,          // loaded microbatches
  InputGradients,  // for the stage before, or kept for the weight gradient
  Buffers,         // for received data
  Transients,      // working memory of a running action; reserved memory of a device
};
inline constexpr auto owner_count = static_cast<std::size_t>(Owner::Transients) + 1;
/// Returns "parameters", "optimizer state", …
std::string to_string(Owner owner);

/// The memory that each owner holds on a rank from `time` (seconds) until the next point.
struct OwnersPoint {
  double time = 0;
  std::array<std::int64_t, owner_count> held{};  // bytes, by Owner
  std::int64_t& operator[](Owner owner) { return held[static_cast<std::size_t>(owner)]; }
  std::int64_t operator[](Owner owner) const { return held[static_cast<std::size_t>(owner)]; }
  std::int64_t sum() const;
};

/// The memory model of one Program. Use one per thread. It is built once and keeps its working
/// memory, so that further answers allocate nothing.
class MemoryModel {
 public:
  /// `structure` must outlive it.
  explicit MemoryModel(const Structure& structure, Holding holding = {});

  /// Returns the curve of every rank. The answer stays valid until the next call.
  const MemoryCurves& curves(const StepCosts& costs, const Times& times);

  /// Returns the holders of memory on a rank at `time`, the largest first; their sum is the curve.
  std::vector<Holder> holders(const StepCosts& costs, const Times& times, int rank,
                              double time) const;

  /// Returns the memory of each owner on each rank in order of time, first the standing memory at
  /// 0. At every time the owners add up to the curve.
  std::vector<std::vector<OwnersPoint>> by_owner(const StepCosts& costs, const Times& times) const;

 private:
  class StreamMaker;
  /// The captured graphs of a stage (training.cuda_graphs).
  struct Captured {
    int copies = 0;       // one for each slot
    bool splits = false;  // W and I are separate
    bool reruns = false;
  };
  /// The changes of one event on one rank, as classes of amounts; -1: no change. Values below -1 in
  /// `at_release` mean that the end changes more than one class: -2 is the first of end_lists_, -3
  /// the second, …
  struct Entry {
    int event = 0;
    int at_start = -1;
    int at_release = -1;
  };
  struct EndList {
    std::size_t begin = 0, end = 0;  // in end_changes_
  };
  /// One class of amounts that an event's end changes.
  struct EndChange {
    int amount_class = 0;
    bool is_early = false;  // before the event ends, see When::Part
    int later_than = -1;    // only if that event has ended
  };
  /// Bytes that the end of an event changes, some of them a little before the end.
  struct Ending {
    std::int64_t early = 0, at_end = 0;
  };
  /// Changes that are in order of time: those of a rank's compute or of a queue.
  struct Stream {
    std::size_t begin = 0;  // in entries_
    std::size_t end = 0;
  };
  /// Amounts that are gained and lost together, as bit sets; and the number of times that the
  /// stage's gradients are set aside, minus the number of times that they are released.
  struct AmountClass {
    int stage = 0;
    std::uint64_t gained = 0;
    std::uint64_t lost = 0;
    int aside = 0;
  };

  void note_captured();
  void make_streams();
  void price(const StepCosts& costs);
  std::int64_t amount(int amount_class, int event) const;
  MemoryPoint* expand(const Stream& stream, const StepCosts& costs, const Times& times,
                      MemoryPoint* next) const;
  Ending ending_of(const Entry& entry, const Times& times) const;
  std::span<const MemoryPoint> merge_neighbors(int rank, const StepCosts& costs,
                                               const Times& times);
  void draw(int rank, plan::Bytes standing, std::span<const MemoryPoint> own,
            std::span<const MemoryPoint> others);
  std::size_t most_points(const Stream& stream) const;
  plan::Bytes standing(const StepCosts& costs, int rank) const;
  plan::Bytes set_aside(const StepCosts& costs, int rank) const;
  /// Returns the workspace of the device plus the largest workspace of the rank's stages.
  plan::Bytes workspaces(const StepCosts& costs, int rank) const;
  /// Returns the number of gradient groups beyond the first; each has its own sum.
  int more_groups() const {
    return holding_.gradient_groups > 1 ? holding_.gradient_groups - 1 : 0;
  }

  const Structure& structure_;
  Holding holding_;
  std::vector<std::vector<int>> stages_of_rank_;
  std::vector<int> weight_versions_;  // by rank
  std::vector<Captured> captured_;    // by stage; empty: no stage is captured
  std::vector<Entry> entries_;
  std::vector<EndList> end_lists_;
  std::vector<EndChange> end_changes_;
  std::vector<std::vector<Stream>> streams_;  // by rank: first its compute, then the changes that
                                              // others time
  std::vector<AmountClass> classes_;

  std::vector<double> lengths_;           // the distinct ones, ascending
  std::vector<int> length_of_;            // by microbatch; empty: all have the first length
  std::vector<std::int64_t> amounts_;     // by length and class
  std::vector<MemoryPoint> own_changes_;  // here `held` is a difference
  std::vector<MemoryPoint> other_changes_, next_changes_, merged_changes_;
  MemoryCurves curves_;
};

/// Returns the curves as samples of a Timeline.
std::vector<plan::MemorySample> samples_of(const MemoryCurves& curves);

}  // namespace pipewright::sim
