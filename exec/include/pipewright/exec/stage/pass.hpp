#pragma once

// One pass of a Program over a batch: its step, its data, and whether it trains.

namespace pipewright::exec {

class Dataset;

struct Pass {
  const Dataset* data = nullptr;
  int step = 0;
  int first_microbatch = 0;  // of this replica, in the whole batch
  int microbatches = 1;      // in the whole batch
  bool training = true;
  double loss_scale = 1;
  bool keep_outputs = false;
  bool loss = true;      // false: targets are not read; only for passes that do not train
  bool observed = true;  // false: observers of instructions are not called
  bool goes_on = false;  // the same Program runs the next step right after this one
};

}  // namespace pipewright::exec
