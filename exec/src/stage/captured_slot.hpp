#pragma once

// What a stage does with the microbatches of one slot, captured with the first of them and replayed
// for the others: from and to memory that is always the same.

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "pipewright/exec/device/capture.hpp"
#include "pipewright/exec/stage/stage_spec.hpp"
#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::exec {

/// What a part of a microbatch's work makes.
struct Computed {
  Tensors values;     // for another stage; a last stage's forward: the loss
  Tensors gradients;  // by parameter
};

class CapturedSlot {
 public:
  /// For work on the current stream.
  explicit CapturedSlot(AccountEntry* account) : capturer_(make_capturer(account)) {}

  /// Copies what a microbatch brings to where the first one's lay, as leaves of a new graph.
  /// `held`: where the stage keeps it, always in the same order; empty where there is nothing now.
  /// Throws InputError when sizes or types differ from the first microbatch's.
  void settle(const std::vector<Tensors*>& held);

  /// Captures `part` the first time, and replays what was captured then. The answer stays where it
  /// is until the next microbatch of the slot comes to this part.
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
