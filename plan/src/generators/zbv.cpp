#include <algorithm>

#include "closed_forms.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {
namespace {

/// Builds the list of one rank with two chunks, with separate counts for each chunk.
class ZbvRank {
 public:
  ZbvRank(int rank, int ranks, int microbatches)
      : rank_(rank), ranks_(ranks), stages_{rank, 2 * ranks - 1 - rank}, wanted_(microbatches) {}

  /// Builds the list for at least 2P - 1 microbatches, because the order fills the pipeline only
  /// then. Actions of surplus microbatches are left out.
  std::vector<Action> run() && {
    warm_up();
    const int planned = std::max(2 * ranks_ - 1, wanted_);
    while (forwards_[1] < forwards_[0] || forwards_[0] < planned)
      steady(forwards_[0] < planned);
    cool_down();
    return std::move(actions_);
  }

 private:
  void add(ActionKind kind, int chunk, int& count) {
    if (count < wanted_)
      actions_.push_back({kind, stages_[chunk], count});
    ++count;
  }
  void forward(int chunk) { add(ActionKind::Forward, chunk, forwards_[chunk]); }
  void input_gradient(int chunk) { add(ActionKind::InputGradient, chunk, inputs_[chunk]); }
  void weight_gradient(int chunk) { add(ActionKind::WeightGradient, chunk, weights_[chunk]); }
  void backward(int chunk) {
    input_gradient(chunk);
    weight_gradient(chunk);
  }

  void warm_up() {
    for (int i = 0; i < 2 * (ranks_ - rank_) - 1; ++i)
      forward(0);
    for (int i = 0; i < rank_; ++i) {
      forward(1);
      forward(0);
    }
    for (int i = 0; i < ranks_ - rank_; ++i) {
      forward(1);
      backward(1);
    }
  }

  void steady(bool more) {
    if (more)
      forward(0);
    backward(0);
    forward(1);
    backward(1);
  }

  /// Runs input gradients first, because other ranks wait for them. Weight gradients fill the rest.
  void cool_down() {
    for (int i = 0; i < rank_; ++i) {
      input_gradient(0);
      input_gradient(1);
    }
    for (int i = 0; i < ranks_ - rank_; ++i)
      backward(0);
    for (const int chunk : {1, 0})
      while (weights_[chunk] < inputs_[chunk])
        weight_gradient(chunk);
  }

  int rank_;
  int ranks_;
  int stages_[2];
  int wanted_;
  int forwards_[2] = {0, 0};
  int inputs_[2] = {0, 0};
  int weights_[2] = {0, 0};
  std::vector<Action> actions_;
};

}  // namespace

Schedule make_zbv(int ranks, int microbatches) {
  check_sizes("zbv", ranks, microbatches, 2);
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (int rank = 0; rank < ranks; ++rank)
    schedule.ranks.push_back(ZbvRank(rank, ranks, microbatches).run());
  return schedule;
}

ScheduleDescriptor schedule::zbv() {
  return {.name = "zbv",
          .aliases = {"ZeroBubble-V"},
          .torch_class = "ZBVZeroBubble",
          .planned = Planned::ByDefault,
          .chunks = Chunks::Two,
          .steps_by_rank = true,
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            return {make_zbv(r.ranks, r.microbatches)};
          },
          .bubble = no_bubble_in_a_v(),
          .bubble_is_of_span = true,
          .activations = {"P", [](const ScheduleSizes& s) -> std::optional<double> {
                            if (s.microbatches < 2 * s.ranks - 1)
                              return {};
                            return s.ranks;
                          }}};
}

}  // namespace pipewright::plan
