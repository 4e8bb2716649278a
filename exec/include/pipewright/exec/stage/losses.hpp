#pragma once

// The losses of the microbatches of a pass. Those on a GPU are read together at the end of the
// pass, so that no forward waits for the device.

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace pipewright::exec {

/// The loss of one microbatch, as the loss function returned it, and its weight in the batch's
/// loss.
struct MicrobatchLoss {
  double loss = 0;
  double weight = 0;
  bool is_known = false;  // true if this rank has the loss
};

/// Returns the batch's mean loss, summed in the order of microbatches.
double mean_loss(const std::vector<MicrobatchLoss>& losses);

class Losses {
 public:
  void begin(int microbatches);
  /// Notes a loss without waiting for the device. `copies`: the loss's memory will be overwritten.
  void add(int microbatch, const at::Tensor& loss, double weight, bool copies);
  /// Returns the gradient with which the backward of a loss begins. `scale` is the same for all
  /// losses of a pass.
  at::Tensor gradient(const at::Tensor& loss, double scale, double weight);
  /// Reads the noted losses. Blocks until the device has computed them.
  void read();
  const std::vector<MicrobatchLoss>& by_microbatch() const { return losses_; }

 private:
  std::vector<MicrobatchLoss> losses_;
  std::vector<std::pair<std::size_t, at::Tensor>> unread_;  // on the device, with their microbatch
  at::Tensor gradient_;                                     // gradient of a loss whose weight is 1
};

}  // namespace pipewright::exec
