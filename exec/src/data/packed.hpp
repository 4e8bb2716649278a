#pragma once

// Samples that are filled with whole documents.

#include <mutex>
#include <utility>
#include <vector>

#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::exec {

/// Samples packed with documents. A token of a document is an input whose target is the document's
/// next token; its last token is only a target. A sample has as many documents, in the order of the
/// file, as fit into `sequence` inputs. A longer document fills samples alone, and its rest begins
/// the next sample.
///
/// A microbatch has two inputs, both int64 [microbatch_size, sequence]: the tokens, and for each
/// token the index of its document within the sample. Padding after the last document has token 0,
/// document -1 and target `ignored_target`. A microbatch's weight is proportional to
/// its number of targets that are not ignored. Each sample occurs once in an epoch.
class Packed final : public Dataset {
 public:
  /// `tokens` has one dimension. `ends` are the ends of documents, ascending; at least one document
  /// has two tokens.
  Packed(at::Tensor tokens, const std::vector<std::int64_t>& ends, int sequence,
         const BatchShape& shape);

  Tensors inputs(int step, int microbatch) const override;
  at::Tensor target(int step, int microbatch) const override;
  double weight(int step, int microbatch) const override;
  std::int64_t sample_count() const { return static_cast<std::int64_t>(samples_.size()) - 1; }

 private:
  struct Piece {
    std::int64_t begin = 0, length = 0;  // inputs, all of one document
  };
  /// Returns the range of pieces that form one sample of a microbatch.
  std::pair<const Piece*, const Piece*> pieces_of(int step, int microbatch, int sample) const;
  std::int64_t targets_of(int step, int microbatch) const;
  double mean_targets(int step) const;

  at::Tensor tokens_;
  int sequence_;
  BatchShape shape_;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> samples_;  // first piece of each sample, then the number of pieces

  mutable std::mutex mutex_;
  // A step, and the mean number of targets of its microbatches.
  mutable std::pair<int, double> newest_{-1, 0};
};

}  // namespace pipewright::exec
