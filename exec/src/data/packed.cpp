#include "packed.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "sample_order.hpp"

namespace pipewright::exec {

Packed::Packed(at::Tensor tokens, const std::vector<std::int64_t>& ends, int sequence,
               const BatchShape& shape)
    : tokens_(std::move(tokens)), sequence_(sequence), shape_(shape) {
  std::int64_t begin = 0, left = 0;
  for (const std::int64_t end : ends) {
    while (begin < end - 1) {
      const std::int64_t length = std::min<std::int64_t>(end - 1 - begin, sequence);
      if (length > left) {
        samples_.push_back(pieces_.size());
        left = sequence;
      }
      pieces_.push_back({begin, length});
      left -= length;
      begin += length;
    }
    begin = end;
  }
  samples_.push_back(pieces_.size());
}

std::pair<const Packed::Piece*, const Packed::Piece*> Packed::pieces_of(int step, int microbatch,
                                                                        int sample) const {
  const auto number =
      static_cast<std::size_t>(sample_at(step, microbatch, sample, shape_, sample_count()));
  return {pieces_.data() + samples_[number], pieces_.data() + samples_[number + 1]};
}

Tensors Packed::inputs(int step, int microbatch) const {
  at::Tensor tokens = at::zeros({shape_.microbatch_size, sequence_}, at::kLong);
  at::Tensor documents = at::full_like(tokens, -1);
  for (int sample = 0; sample < shape_.microbatch_size; ++sample) {
    std::int64_t at = 0;
    const auto [first, last] = pieces_of(step, microbatch, sample);
    for (const Piece* piece = first; piece != last; at += piece++->length) {
      tokens[sample]
          .narrow(0, at, piece->length)
          .copy_(tokens_.narrow(0, piece->begin, piece->length));
      documents[sample].narrow(0, at, piece->length).fill_(piece - first);
    }
  }
  return {tokens, documents};
}

at::Tensor Packed::target(int step, int microbatch) const {
  at::Tensor targets = at::full({shape_.microbatch_size, sequence_}, ignored_target, at::kLong);
  for (int sample = 0; sample < shape_.microbatch_size; ++sample) {
    std::int64_t at = 0;
    const auto [first, last] = pieces_of(step, microbatch, sample);
    for (const Piece* piece = first; piece != last; at += piece++->length)
      targets[sample]
          .narrow(0, at, piece->length)
          .copy_(tokens_.narrow(0, piece->begin + 1, piece->length));
  }
  return targets;
}

std::int64_t Packed::targets_of(int step, int microbatch) const {
  std::int64_t count = 0;
  for (int sample = 0; sample < shape_.microbatch_size; ++sample) {
    const auto [first, last] = pieces_of(step, microbatch, sample);
    for (const Piece* piece = first; piece != last; ++piece)
      count += piece->length;
  }
  return count;
}

/// Returns the mean number of targets in the step's microbatches. Cached, because every microbatch
/// of a step needs it and it takes a pass over the whole batch.
double Packed::mean_targets(int step) const {
  const std::lock_guard lock(mutex_);
  if (newest_.first != step) {
    std::int64_t all = 0;
    for (int m = 0; m < shape_.microbatches; ++m)
      all += targets_of(step, m);
    newest_ = {step, static_cast<double>(all) / shape_.microbatches};
  }
  return newest_.second;
}

double Packed::weight(int step, int microbatch) const {
  return static_cast<double>(targets_of(step, microbatch)) / mean_targets(step);
}

}  // namespace pipewright::exec
