#pragma once

// Work that a device is given again and again. On a GPU it is captured once, as a CUDA graph, and
// from then on given to the device as a whole, which costs the thread one call instead of one for
// each kernel. The CPU has no such thing: there the work is done again, and its memory is counted
// as if it were captured.

#include <functional>
#include <memory>

namespace pipewright::exec {

struct AccountEntry;

/// Work over memory that is always the same. What it reads on the host (numbers, sizes, which
/// memory) it has read once for all when it was captured.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
  /// Gives the work to the current stream.
  virtual void replay() = 0;
};

/// Captures pieces of work that are replayed one after the other, always in the order in which they
/// were captured: they share memory. Tensors that a piece makes stay where they are; what nobody
/// keeps is memory for the pieces captured after it.
class Capturer {
 public:
  virtual ~Capturer() = default;
  /// Does not do the work yet. Throws InputError where it cannot be captured, as it waits for the
  /// device.
  virtual std::unique_ptr<CapturedWork> capture(std::function<void()> work) = 0;
};

/// For the current stream. Memory that captured work keeps is charged to `account`.
std::unique_ptr<Capturer> make_capturer(AccountEntry* account);

}  // namespace pipewright::exec
