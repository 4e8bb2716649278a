#pragma once

// The sending end of a connection: bytes are kept until they have gone.

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "tensor_mail.hpp"

namespace pipewright::exec {

/// All that is under way to one peer: a thread of its own keeps the bytes until they have gone.
/// Gloo has no way to ask whether they have, only to wait for it.
class SendThread {
 public:
  explicit SendThread(GlooMesh& mesh);
  /// The mesh must have been ended, and this thread.
  ~SendThread();

  void add(Operations started);
  /// Until all has gone, or the thread has been ended.
  void flush();
  void end();

 private:
  void wait_until_ended();

  GlooMesh& mesh_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Operations> under_way_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace pipewright::exec
