#pragma once

// The messages that two ranks exchange while their link is measured.

#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::profiler {

/// The messages of a pair, sent as those of two stages; the lower rank has the first stage.
struct LinkMessages {
  int low = 0, high = 0;
  int first_stage = 0;

  exec::Transfer sent_by(int rank, int microbatch) const {
    using Kind = plan::InstructionKind;
    return rank == low ? down(Kind::SendActivation, microbatch)
                       : up(Kind::SendGradient, microbatch);
  }
  exec::Transfer received_by(int rank, int microbatch) const {
    using Kind = plan::InstructionKind;
    return rank == low ? up(Kind::ReceiveGradient, microbatch)
                       : down(Kind::ReceiveActivation, microbatch);
  }

 private:
  exec::Transfer down(plan::InstructionKind kind, int microbatch) const {
    const int stage = kind == plan::InstructionKind::SendActivation ? 0 : 1;
    return {{kind, first_stage + stage, microbatch}, low, high};
  }
  exec::Transfer up(plan::InstructionKind kind, int microbatch) const {
    const int stage = kind == plan::InstructionKind::SendGradient ? 1 : 0;
    return {{kind, first_stage + stage, microbatch}, high, low};
  }
};

}  // namespace pipewright::profiler
