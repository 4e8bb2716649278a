#pragma once

// A stage's work on the microbatches of one slot, captured with the first of them and replayed for
// the others. The work reads and writes memory at fixed addresses.

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "pipewright/exec/device/capture.hpp"
#include "pipewright/exec/stage/stage_spec.hpp"
#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::exec {

/// The results of a part of a microbatch's work.
struct Computed {
  Tensors values;     // for another stage; the loss for the last stage's forward
  Tensors gradients;  // by parameter
};

class CapturedSlot {
 public:
  /// Captures and replays work on the current stream.
  explicit CapturedSlot(AccountEntry* account) : capturer_(make_capturer(account)) {}

  /// Copies a microbatch's tensors to the memory of the first microbatch's, as leaves of a new
  /// graph. `held` lists where the stage keeps them, always in the same order; a list is empty if
  /// it has no tensors now. Throws InputError when sizes or types differ from the first
  /// microbatch's.
  void settle(const std::vector<Tensors*>& held);

  /// Captures `part` at the first call and replays the captured work. The result stays valid until
  /// the slot's next microbatch runs this part.
  const Computed& perform(plan::InstructionKind kind, BackwardKind backward,
                          const std::function<Computed()>& part);

 private:
  struct Part {
    Computed computed;
    std::unique_ptr<CapturedWork> work;
  };
  std::vector<Tensors> memory_;  // by place in `held`
  std::unique_ptr<Capturer> capturer_;
  std::map<std::pair<plan::InstructionKind, BackwardKind>, Part> parts_;
};

}  // namespace pipewright::exec
