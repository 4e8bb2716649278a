#pragma once

// Work that is submitted to a device repeatedly. On a GPU it is captured once as a CUDA graph and
// then launched as a whole, with one call instead of one per kernel. The CPU has no graphs: there
// the work is executed again, and its memory is counted as if it were captured.

#include <functional>
#include <memory>

namespace pipewright::exec {

struct AccountEntry;

/// Captured work on fixed memory. All that it reads on the host (numbers, sizes, addresses) was
/// read once during the capture.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
  /// Submits the work to the current stream.
  virtual void replay() = 0;
};

/// Captures pieces of work that share memory and must be replayed in the order in which they were
/// captured. Tensors that a piece creates keep their addresses. Memory that is released after a
/// piece is reused by later pieces.
class Capturer {
 public:
  virtual ~Capturer() = default;
  /// Captures the work without executing it. Throws InputError if it cannot be captured because it
  /// waits for the device.
  virtual std::unique_ptr<CapturedWork> capture(std::function<void()> work) = 0;
};

/// Makes a capturer for the current stream. Memory that captured work retains is charged to
/// `account`.
std::unique_ptr<Capturer> make_capturer(AccountEntry* account);

}  // namespace pipewright::exec
