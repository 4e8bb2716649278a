#pragma once

// One pass of a Program over a batch: which step of which data it runs, and whether it trains.

namespace pipewright::exec {

class Dataset;

struct Pass {
  const Dataset* data = nullptr;
  int step = 0;
  int first_microbatch = 0;  // of this replica, in the whole batch
  int microbatches = 1;      // of the whole batch
  bool training = true;
  double loss_scale = 1;
  bool keep_outputs = false;
  bool loss = true;      // without one, targets are not read: for passes that do not train
  bool observed = true;  // whoever observes instructions hears of it
  bool goes_on = false;  // the same Program runs the next step behind it
};

}  // namespace pipewright::exec
