#pragma once

// One run of a Program over a batch, for a training step or for evaluation and inference: its step
// number, its data, and what it computes.

namespace pipewright::exec {

class Dataset;

struct Pass {
  const Dataset* data = nullptr;
  int step = 0;
  int first_microbatch = 0;  // index of this replica's first one in the batch of all replicas
  int microbatches = 1;      // number in the batch of all replicas
  bool training = true;
  double loss_scale = 1;
  bool keep_outputs = false;  // keep the last stage's outputs
  bool loss = true;           // false: no loss is computed and no targets are read; not in training
  bool observed = true;       // false: instructions are not reported to the observer
  /// The same Program runs step `step` + 1 right after this one, so its data is read ahead.
  bool continues = false;
};

}  // namespace pipewright::exec
