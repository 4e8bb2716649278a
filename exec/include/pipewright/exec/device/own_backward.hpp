#pragma once

// Who launches the backwards of a GPU: the rank's own thread.

#include <c10/core/AutogradState.h>

namespace pipewright::exec {

/// While it lives, this thread computes its backwards itself. LibTorch has one thread for those of
/// a GPU: of two ranks there it would launch one after the other, and where the first waits for the
/// second, as shards of a stage do, neither would end.
class OwnBackward {
 public:
  OwnBackward() { state().set_multithreading_enabled(false); }
  ~OwnBackward() { state().set_multithreading_enabled(before_); }
  OwnBackward(const OwnBackward&) = delete;
  OwnBackward& operator=(const OwnBackward&) = delete;

 private:
  static c10::AutogradState& state() { return c10::AutogradState::get_tls_state(); }

  bool before_ = state().get_multithreading_enabled();
};

}  // namespace pipewright::exec
