#pragma once

// The change with which a draft's memory suffices, looked for on a thread of its own: that takes
// as many answers as there are changes, and no window waits for it.

#include <QObject>
#include <functional>
#include <optional>
#include <thread>

#include "pipewright/loop/what_if.hpp"

namespace pipewright::gui {

/// Belongs to the thread that makes it, whose event loop brings what was found.
class RemedySearch {
 public:
  using Found = std::function<void(const std::optional<sim::Remedy>&)>;

  /// Calls `found` later, unless another search begins or this one is stopped until then.
  void start(loop::Draft draft, Found found);
  /// Does not wait for the search to end.
  void stop() { thread_.request_stop(); }

 private:
  QObject here_;  // outlives the thread, which posts to it
  std::jthread thread_;
};

}  // namespace pipewright::gui
