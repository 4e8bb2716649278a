#pragma once

// Times orders. Every stage runs its list strictly in order, and an action starts once the previous
// action of its stage has ended and its input has arrived.

#include <tuple>
#include <vector>

#include "problem.hpp"

namespace pipewright::plan::zero_bubble {

/// How long the stages take from their first start to their last end. The longest span decides; the
/// mean breaks ties.
struct Spans {
  double longest = 0;
  double mean = 0;
  friend bool operator<(const Spans& a, const Spans& b) {
    return std::tie(a.longest, a.mean) < std::tie(b.longest, b.mean);
  }
};

/// Reuses its memory from call to call, because a search times many orders.
class Timing {
 public:
  explicit Timing(const Problem& problem);

  /// Returns the spans; infinite if the orders deadlock.
  Spans spans(const std::vector<Order>& orders);

 private:
  struct Progress {
    int actions = 0;
    int forwards = 0;
    int input_gradients = 0;
    double start = 0;
    double free_at = 0;
  };

  void advance(int stage, const Order& order);
  bool run_forward(int stage);
  bool run_input_gradient(int stage);

  const Problem& problem_;
  std::vector<Progress> stages_;
  std::vector<double> forward_ends_;         // by stage, then microbatch
  std::vector<double> input_gradient_ends_;  // by stage, then microbatch
};

}  // namespace pipewright::plan::zero_bubble
