#pragma once

// What every rank holds over time, when most, and who holds it then. The rules are those of
// docs/time-and-memory.md.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pipewright/plan/costs/training_memory.hpp"
#include "pipewright/sim/structure/step_costs.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// What a rank holds from `time` (seconds) until its next point.
struct MemoryPoint {
  double time = 0;
  std::int64_t held = 0;  // bytes
};

/// The first instant at which a rank holds most.
struct MemoryPeak {
  double time = 0;  // seconds
  plan::Bytes held;
};

struct MemoryCurves {
  std::vector<MemoryPeak> peaks;  // by rank

  /// In order of time: first what stands at 0, then one point for each later change. Several
  /// changes at one instant are one point.
  std::span<const MemoryPoint> of(int rank) const {
    const auto at = static_cast<std::size_t>(rank);
    return {points.data() + begins[at], counts[at]};
  }

  /// The peak of the rank that holds most.
  plan::Bytes highest_peak() const;

  std::vector<MemoryPoint> points;  // `of` says whose
  std::vector<std::size_t> begins;  // by rank, in `points`
  std::vector<std::size_t> counts;
};

/// How the executor works, as far as it decides what a rank holds.
struct Holding {
  plan::HandOver hand_over = plan::HandOver::Reference;
  /// A copy of a stage adds up its gradients in this many equal groups, in the order of
  /// microbatches, and sets aside what comes too early. 0: each is added as it comes.
  int gradient_groups = 0;
  /// What a stage does with a microbatch is captured once for each of its slots and replayed, from
  /// and to memory that stays (training.cuda_graphs).
  bool captures = false;
  friend bool operator==(const Holding&, const Holding&) = default;
};

struct Holder {
  std::string name;  // "parameters", "activations 2F5", "receive buffer 1RECV_F2", …
  plan::Bytes bytes;
  friend bool operator==(const Holder&, const Holder&) = default;
};

/// Whose bytes they are, for a picture of all of them over time.
enum class Owner {
  Parameters,  // older weights included
  Gradients,   // those set aside included
  OptimizerState,
  Activations,
  Inputs,          // what was loaded
  InputGradients,  // made for the stage before or for the weight gradient
  Buffers,         // of what is received
  Transients,      // beside what an action keeps, while it runs; what a device sets aside
};
inline constexpr auto owner_count = static_cast<std::size_t>(Owner::Transients) + 1;
/// "parameters", "optimizer state", …
std::string to_string(Owner owner);

/// What each owner holds on a rank from `time` (seconds) until the next point.
struct OwnersPoint {
  double time = 0;
  std::array<std::int64_t, owner_count> held{};  // bytes, by Owner
  std::int64_t& operator[](Owner owner) { return held[static_cast<std::size_t>(owner)]; }
  std::int64_t operator[](Owner owner) const { return held[static_cast<std::size_t>(owner)]; }
  std::int64_t sum() const;
};

/// One per thread. It is built once for a Program and keeps its working memory, so that another
/// answer allocates nothing.
class MemoryModel {
 public:
  /// `structure` must outlive it.
  explicit MemoryModel(const Structure& structure, Holding holding = {});

  /// The curve of every rank. The answer stays valid until the next call.
  const MemoryCurves& curves(const StepCosts& costs, const Times& times);

  /// Who holds what on a rank at an instant, the largest first; together they are the curve.
  std::vector<Holder> holders(const StepCosts& costs, const Times& times, int rank,
                              double time) const;

  /// Who holds what on each rank over time: in order of time, first what stands at 0. At every
  /// instant the owners add up to the curve.
  std::vector<std::vector<OwnersPoint>> by_owner(const StepCosts& costs, const Times& times) const;

 private:
  class StreamMaker;
  /// What is captured of a stage.
  struct Captured {
    int copies = 0;       // one for each slot
    bool splits = false;  // W is apart from I
    bool reruns = false;
  };
  /// What one event changes on one rank: classes of amounts, -1 for nothing. Below that, what its
  /// end changes is not one class: -2 is the first of end_lists_, -3 the second, …
  struct Entry {
    int event = 0;
    int at_start = -1;
    int at_release = -1;
  };
  struct EndList {
    std::size_t begin = 0, end = 0;  // in end_changes_
  };
  /// One class of those that an event's end changes.
  struct EndChange {
    int amount_class = 0;
    bool is_early = false;  // before the event ends, see When::Part
    int later_than = -1;    // only if that event has ended
  };
  /// Bytes that the end of an event changes, some a little before it.
  struct Ending {
    std::int64_t early = 0, at_end = 0;
  };
  /// Changes that come in order of time by themselves: those of a rank's compute or of a queue.
  struct Stream {
    std::size_t begin = 0;  // in entries_
    std::size_t end = 0;
  };
  /// Amounts that are gained and lost together, as sets of bits; and how many times the stage's
  /// gradients are set aside, less how many times they are let go of.
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
  std::span<const MemoryPoint> merge_neighbours(int rank, const StepCosts& costs,
                                                const Times& times);
  void draw(int rank, plan::Bytes standing, std::span<const MemoryPoint> own,
            std::span<const MemoryPoint> others);
  std::size_t most_points(const Stream& stream) const;
  plan::Bytes standing(const StepCosts& costs, int rank) const;
  plan::Bytes set_aside(const StepCosts& costs, int rank) const;
  /// Of the device, and the most of the rank's stages.
  plan::Bytes workspaces(const StepCosts& costs, int rank) const;
  /// Each group beyond the first has a sum of its own.
  int more_groups() const {
    return holding_.gradient_groups > 1 ? holding_.gradient_groups - 1 : 0;
  }

  const Structure& structure_;
  Holding holding_;
  std::vector<std::vector<int>> stages_of_rank_;
  std::vector<int> weight_versions_;  // by rank
  std::vector<Captured> captured_;    // by stage; empty: nothing is
  std::vector<Entry> entries_;
  std::vector<EndList> end_lists_;
  std::vector<EndChange> end_changes_;
  std::vector<std::vector<Stream>> streams_;  // by rank: first its compute, then what others time
  std::vector<AmountClass> classes_;

  std::vector<double> lengths_;           // the different ones, rising
  std::vector<int> length_of_;            // by microbatch; empty: all the first
  std::vector<std::int64_t> amounts_;     // by length and class
  std::vector<MemoryPoint> own_changes_;  // `held` is then a difference
  std::vector<MemoryPoint> other_changes_, next_changes_, merged_changes_;
  MemoryCurves curves_;
};

/// As the samples of a Timeline.
std::vector<plan::MemorySample> samples_of(const MemoryCurves& curves);

}  // namespace pipewright::sim
