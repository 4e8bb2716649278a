#include "send_thread.hpp"

#include "cpu/unpinned_thread.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {

SendThread::SendThread(GlooMesh& mesh) : mesh_(mesh) {
  thread_ = unpinned_thread([this] { wait_until_ended(); });
}

SendThread::~SendThread() { thread_.join(); }

void SendThread::add(Operations started) {
  const std::lock_guard lock(mutex_);
  under_way_.push_back(std::move(started));
  changed_.notify_all();
}

void SendThread::flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ || under_way_.empty(); });
}

void SendThread::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void SendThread::wait_until_ended() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ended_ || !under_way_.empty(); });
    if (ended_)
      return;
    const Operations& oldest = under_way_.front();
    lock.unlock();
    try {
      for (const GlooMesh::Operation& operation : oldest)
        mesh_.wait(operation);
    } catch (const Aborted&) {
      return;  // the transport is being closed
    }
    lock.lock();
    under_way_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace pipewright::exec
