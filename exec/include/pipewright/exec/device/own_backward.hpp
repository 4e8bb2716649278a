#pragma once

// Runs the backwards of a GPU on the rank's own thread.

#include <c10/core/AutogradState.h>

namespace pipewright::exec {

/// While it exists, this thread runs its backwards itself. LibTorch has one backward thread per
/// GPU. For two ranks on one GPU it would launch one backward after the other; if the first waits
/// for the second, as tensor-parallel ranks do, neither would end.
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
