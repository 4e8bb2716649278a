#include "dual_pipe_rank.hpp"

#include <deque>

namespace pipewright::plan {
namespace {

class Writer {
 public:
  Writer(const DualPipeSide& side_0, const DualPipeSide& side_1)
      : sides_{{side_0.stage, side_0.first_microbatch, side_0.first_microbatch},
               {side_1.stage, side_1.first_microbatch, side_1.first_microbatch}} {}

  void forward(int side) {
    Side& on = sides_[side];
    actions_.push_back({ActionKind::Forward, on.stage, on.next_forward++});
  }
  void backward(int side) {
    Side& on = sides_[side];
    actions_.push_back({ActionKind::Backward, on.stage, on.next_backward++});
  }
  /// Adds the input gradient now. `owed_weight` adds its weight gradient later.
  void input_gradient(int side) {
    Side& on = sides_[side];
    actions_.push_back({ActionKind::InputGradient, on.stage, on.next_backward});
    owed_.push_back({ActionKind::WeightGradient, on.stage, on.next_backward++});
  }
  void owed_weight() {
    actions_.push_back(owed_.front());
    owed_.pop_front();
  }
  /// Adds a forward of one side and a backward of the other side as a fused pair.
  void fused(int forward_side, int backward_side) {
    forward(forward_side);
    actions_.back().fused_with_next = true;
    backward(backward_side);
  }

  std::vector<Action> take() { return std::move(actions_); }

 private:
  struct Side {
    int stage;
    int next_forward;
    int next_backward;
  };
  Side sides_[2];
  std::deque<Action> owed_;
  std::vector<Action> actions_;
};

/// Drains the last microbatches of both sides. From the middle on the backwards are split, so that
/// the weight gradients fill the cool-down.
void drain(Writer& write, int hop) {
  const int pairs = hop + 1;
  bool split = false;
  for (int i = 0; i < pairs; ++i)
    for (const int side : {1, 0}) {
      const bool turns_here = hop % 2 == 1 ? side == 1 : side == 0;
      split = split || (i == pairs / 2 && turns_here);
      split ? write.input_gradient(side) : write.backward(side);
    }
}

}  // namespace

std::vector<Action> dual_pipe_rank(const DualPipeSide& side_0, const DualPipeSide& side_1, int hop,
                                   int hops, int microbatches) {
  const int hops_left = hops - hop - 1;
  Writer write(side_0, side_1);
  for (int i = 0; i < 2 * hops_left; ++i)  // 1: the first side alone
    write.forward(0);
  for (int i = 0; i < hop + 1; ++i) {  // 2: both sides forward
    write.forward(0);
    write.forward(1);
  }
  for (int i = 0; i < hops_left; ++i) {  // 3: the second side backward, split
    write.input_gradient(1);
    write.owed_weight();
    write.forward(1);
  }
  for (int i = 0; i < microbatches - 2 * hops + hop + 1; ++i) {  // 4: steady
    // Where the sides meet, the very first pair waits less if it is not fused.
    if (i == 0 && hops_left == 0) {
      write.forward(0);
      write.backward(1);
    } else {
      write.fused(0, 1);
    }
    write.fused(1, 0);
  }
  for (int i = 0; i < hops_left; ++i) {  // 5: no more forwards on the first side
    write.backward(1);
    write.fused(1, 0);
  }
  drain(write, hop);                     // 6: no more forwards
  for (int i = 0; i < hops_left; ++i) {  // 7: weight gradients between the last input gradients
    write.owed_weight();
    write.input_gradient(0);
  }
  for (int i = 0; i < hop + 1; ++i)  // 8: the weight gradients still owed
    write.owed_weight();
  return write.take();
}

}  // namespace pipewright::plan
