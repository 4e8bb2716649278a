#pragma once

// A search on a thread of its own, which no window waits for: of those that are begun, only the
// newest is heard of.

#include <QObject>
#include <functional>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

namespace pipewright::gui {

/// Belongs to the thread that makes it, whose event loop brings what was found.
template <class Result>
class BackgroundSearch {
 public:
  using Work = std::function<Result(const std::stop_token&)>;
  /// Nothing where there was not the memory to search.
  using Found = std::function<void(const std::optional<Result>&)>;

  /// Calls `found` later, unless another search begins or this one is stopped until then.
  void start(Work work, Found found) {
    stop();
    running_ = true;
    // One after the other: it is the new thread that waits for the old one.
    thread_ = std::jthread([this, before = std::move(thread_), work = std::move(work),
                            found = std::move(found)](const std::stop_token& stop) mutable {
      if (before.joinable())
        before.join();
      std::optional<Result> result;
      try {
        result = work(stop);
      } catch (const std::bad_alloc&) {
      }
      QMetaObject::invokeMethod(
          &here_,
          [this, stop, result = std::move(result), found = std::move(found)] {
            if (stop.stop_requested())
              return;
            running_ = false;
            found(result);
          },
          Qt::QueuedConnection);
    });
  }
  /// Does not wait for the search to end.
  void stop() {
    running_ = false;
    thread_.request_stop();
  }
  /// Whether a search goes on whose result will be told.
  bool is_running() const { return running_; }

 private:
  bool running_ = false;
  QObject here_;  // outlives the thread, which posts to it
  std::jthread thread_;
};

}  // namespace pipewright::gui
