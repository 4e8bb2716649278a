#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "pipewright/exec/transport.hpp"

namespace pipewright::exec {
namespace {

using plan::Instruction;

using Clock = std::chrono::steady_clock;

/// What one directed pair of ranks has under way.
class Mailbox {
 public:
  void put(const Instruction& send, at::Tensor tensor, bool wait_until_taken,
           Clock::duration patience) {
    std::unique_lock lock(mutex_);
    if (aborted_)
      throw Aborted();
    letters_[key_of(send)] = std::move(tensor);
    changed();
    if (wait_until_taken)
      await(lock, patience, [&] { return !letters_.contains(key_of(send)); });
  }

  at::Tensor take(const Instruction& send, Clock::duration patience) {
    std::unique_lock lock(mutex_);
    await(lock, patience, [&] { return letters_.contains(key_of(send)); });
    at::Tensor tensor = std::move(letters_.extract(key_of(send)).mapped());
    changed();
    return tensor;
  }

  void abort() {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    changed();
  }

 private:
  void changed() {
    changes_.fetch_add(1, std::memory_order_release);
    wake_.notify_all();
  }

  /// Waits until `condition` holds, first by looking again and again, then asleep: a thread that
  /// sleeps is some 60 microseconds late, one that looks is not.
  template <class Condition>
  void await(std::unique_lock<std::mutex>& lock, Clock::duration patience,
             const Condition& condition) {
    const auto deadline = Clock::now() + patience;
    while (!aborted_ && !condition() && Clock::now() < deadline) {
      const auto seen = changes_.load(std::memory_order_relaxed);
      lock.unlock();
      while (changes_.load(std::memory_order_acquire) == seen && Clock::now() < deadline)
        std::this_thread::yield();
      lock.lock();
    }
    wake_.wait(lock, [&] { return aborted_ || condition(); });
    if (aborted_)
      throw Aborted();
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<unsigned> changes_{0};  // written under the mutex, read without it
  std::map<plan::InstructionKey, at::Tensor> letters_;
  bool aborted_ = false;
};

/// How long a rank looks before it sleeps: not at all when it would take a core from another rank.
Clock::duration patience_of(std::size_t ranks) {
  return std::chrono::milliseconds(ranks <= std::thread::hardware_concurrency() ? 20 : 0);
}

class InProcessTransport final : public Transport {
 public:
  explicit InProcessTransport(const plan::Program& program)
      : ranks_(program.ranks.size()),
        rank_of_stage_(program.placement.routes.front()),
        wait_until_taken_(program.blocking && program.transfers == plan::TransferMode::Rendezvous),
        patience_(patience_of(ranks_)),
        mailboxes_(ranks_ * ranks_) {}

  void send(const Instruction& send, at::Tensor tensor) override {
    mailbox(send).put(send, std::move(tensor), wait_until_taken_, patience_);
  }

  at::Tensor receive(const Instruction& receive) override {
    const Instruction send = plan::counterpart(receive);
    return mailbox(send).take(send, patience_);
  }

  void abort() override {
    for (Mailbox& box : mailboxes_)
      box.abort();
  }

 private:
  Mailbox& mailbox(const Instruction& send) {
    const auto rank = [&](int stage) {
      return static_cast<std::size_t>(rank_of_stage_[static_cast<std::size_t>(stage)]);
    };
    return mailboxes_[rank(send.stage) * ranks_ + rank(plan::peer_stage(send))];
  }

  std::size_t ranks_;
  std::vector<int> rank_of_stage_;
  bool wait_until_taken_;
  Clock::duration patience_;
  std::vector<Mailbox> mailboxes_;  // by sender, then receiver
};

}  // namespace

std::unique_ptr<Transport> make_in_process_transport(const plan::Program& program) {
  return std::make_unique<InProcessTransport>(program);
}

}  // namespace pipewright::exec
