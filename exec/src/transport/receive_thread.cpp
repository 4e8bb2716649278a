#include "receive_thread.hpp"

#include <algorithm>

#include "unpinned_thread.hpp"

namespace pipewright::exec {

ReceiveThread::ReceiveThread(int ahead, Fetch fetch)
    : ahead_(ahead), fetch_(std::move(fetch)), allowed_(ahead) {
  thread_ = unpinned_thread([this] { fetch_until_ended(); });
}

ReceiveThread::~ReceiveThread() { thread_.join(); }

void ReceiveThread::expect(const Transfer& transfer) {
  const std::lock_guard lock(mutex_);
  add(transfer);
}

void ReceiveThread::add(const Transfer& transfer) {
  places_[key_of(transfer.instruction)] = expected_ever_++;
  expected_.push_back(transfer);
  account_ = current_account();
  changed_.notify_all();
}

/// Lets the thread come to this transfer, and a few further.
void ReceiveThread::ask_for(const Transfer& transfer) {
  const auto key = key_of(transfer.instruction);
  if (!places_.contains(key))
    add(transfer);
  allowed_ = std::max(allowed_, places_.at(key) + 1 + ahead_);
  changed_.notify_all();
}

std::optional<Tensors> ReceiveThread::take_if_there(const Transfer& transfer) {
  const auto key = key_of(transfer.instruction);
  const std::lock_guard lock(mutex_);
  ask_for(transfer);
  if (!settled(key))
    return std::nullopt;
  return taken(key);
}

Tensors ReceiveThread::take(const Transfer& transfer) {
  const auto key = key_of(transfer.instruction);
  std::unique_lock lock(mutex_);
  ask_for(transfer);
  changed_.wait(lock, [&] { return settled(key); });
  return taken(key);
}

Tensors ReceiveThread::taken(const plan::InstructionKey& key) {
  if (ended_)
    throw Aborted(why_);
  places_.erase(key);
  return std::move(letters_.extract(key).mapped());
}

void ReceiveThread::fetch_until_ended() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ended_ || (!expected_.empty() && begun_ < allowed_); });
    if (ended_)
      return;
    const Transfer transfer = expected_.front();
    expected_.pop_front();
    ++begun_;
    const ChargeTo charge(account_);
    lock.unlock();
    Tensors tensors;
    try {
      tensors = fetch_(transfer);
    } catch (const Aborted&) {
      return;  // whoever takes learns it from end()
    }
    lock.lock();
    letters_[key_of(transfer.instruction)] = std::move(tensors);
    changed_.notify_all();
  }
}

void ReceiveThread::end(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (ended_)
    return;
  ended_ = true;
  why_ = why;
  changed_.notify_all();
}

}  // namespace pipewright::exec
