#pragma once

// Samples that are filled with whole documents.

#include <mutex>
#include <utility>
#include <vector>

#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::exec {

/// A token of a document is an input whose target is the document's next token; its last token is a
/// target alone. In the order of the file, as many documents as fit into `sequence` inputs make a
/// sample; a longer one makes samples of its own, and what is left of it begins the next. Of a
/// microbatch the inputs are its tokens and, for each of them, which document of the sample it is
/// of, both int64 [microbatch_size, sequence]; behind the last document the token is 0, of document
/// -1, and the target `ignored_target`. A microbatch has the weight of its other targets. Each
/// sample comes once in an epoch.
class Packed final : public Dataset {
 public:
  /// `tokens`: one dimension. `ends`: of documents, rising, of which one at least has two tokens.
  Packed(at::Tensor tokens, const std::vector<std::int64_t>& ends, int sequence,
         const BatchShape& shape);

  Tensors inputs(int step, int microbatch) const override;
  at::Tensor target(int step, int microbatch) const override;
  double weight(int step, int microbatch) const override;
  std::int64_t sample_count() const { return static_cast<std::int64_t>(samples_.size()) - 1; }

 private:
  struct Piece {
    std::int64_t begin = 0, length = 0;  // inputs; of one document
  };
  /// The pieces of a sample of a microbatch.
  std::pair<const Piece*, const Piece*> pieces_of(int step, int microbatch, int sample) const;
  std::int64_t targets_of(int step, int microbatch) const;
  double mean_targets(int step) const;

  at::Tensor tokens_;
  int sequence_;
  BatchShape shape_;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> samples_;  // the first piece of each, and their number

  mutable std::mutex mutex_;
  mutable std::pair<int, double> newest_{-1, 0};  // step, and the mean of its microbatches' targets
};

}  // namespace pipewright::exec
