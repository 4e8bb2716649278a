#pragma once

// A search on a background thread that never blocks the window. Of several searches, only the
// newest reports its result.

#include <QObject>
#include <functional>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

namespace pipewright::gui {

/// Belongs to the thread that creates it, whose event loop delivers the result.
template <class Result>
class BackgroundSearch {
 public:
  using Work = std::function<Result(const std::stop_token&)>;
  /// Receives the result, or nothing if there was not enough memory to search.
  using Found = std::function<void(const std::optional<Result>&)>;

  /// Calls `found` later, unless another search begins or this one is stopped before that.
  void start(Work work, Found found) {
    stop();
    running_ = true;
    // Searches run one after the other: the new thread waits for the previous one.
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
  /// Returns true while a search is running whose result will be reported.
  bool is_running() const { return running_; }

 private:
  bool running_ = false;
  QObject here_;  // outlives the thread, which posts to it
  std::jthread thread_;
};

}  // namespace pipewright::gui
