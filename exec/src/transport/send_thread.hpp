#pragma once

// The sending end of a connection, which keeps bytes alive until they were sent.

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "tensor_mail.hpp"

namespace pipewright::exec {

/// The sends under way to one peer. A background thread keeps their bytes alive until they were
/// sent, because Gloo can only wait for a send and not poll it.
class SendThread {
 public:
  explicit SendThread(GlooMesh& mesh);
  /// Call `end` on the mesh and on this object before.
  ~SendThread();

  void add(Operations started);
  /// Blocks until all was sent or the thread has been ended.
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
