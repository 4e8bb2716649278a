#include <condition_variable>
#include <map>
#include <mutex>

#include "pipewright/exec/transport.hpp"

namespace pipewright::exec {
namespace {

using plan::Instruction;

/// What one directed pair of ranks has under way.
class Mailbox {
 public:
  void put(const Instruction& send, at::Tensor tensor, bool wait_until_taken) {
    std::unique_lock lock(mutex_);
    if (aborted_)
      throw Aborted();
    letters_[key_of(send)] = std::move(tensor);
    changed_.notify_all();
    if (!wait_until_taken)
      return;
    changed_.wait(lock, [&] { return aborted_ || !letters_.contains(key_of(send)); });
    if (aborted_)
      throw Aborted();
  }

  at::Tensor take(const Instruction& send) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return aborted_ || letters_.contains(key_of(send)); });
    if (aborted_)
      throw Aborted();
    at::Tensor tensor = std::move(letters_.extract(key_of(send)).mapped());
    changed_.notify_all();
    return tensor;
  }

  void abort() {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<plan::InstructionKey, at::Tensor> letters_;
  bool aborted_ = false;
};

class InProcessTransport final : public Transport {
 public:
  explicit InProcessTransport(const plan::Program& program)
      : ranks_(program.ranks.size()),
        rank_of_stage_(program.rank_of_stage),
        wait_until_taken_(program.blocking && program.transfers == plan::TransferMode::Rendezvous),
        mailboxes_(ranks_ * ranks_) {}

  void send(const Instruction& send, at::Tensor tensor) override {
    mailbox(send).put(send, std::move(tensor), wait_until_taken_);
  }

  at::Tensor receive(const Instruction& receive) override {
    const Instruction send = plan::counterpart(receive);
    return mailbox(send).take(send);
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
  std::vector<Mailbox> mailboxes_;  // by sender, then receiver
};

}  // namespace

std::unique_ptr<Transport> make_in_process_transport(const plan::Program& program) {
  return std::make_unique<InProcessTransport>(program);
}

}  // namespace pipewright::exec
