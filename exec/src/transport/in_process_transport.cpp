#include "pipewright/exec/transport/in_process_transport.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {
namespace {

using Clock = std::chrono::steady_clock;

/// A mutex and a condition variable whose waiters spin before they sleep: a thread that sleeps
/// wakes up some 60 microseconds late, one that spins does not.
class Watched {
 public:
  explicit Watched(Clock::duration spin_time) : spin_time_(spin_time) {}

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  /// Releases the lock, under which the awaited state has changed, and only then notifies: a
  /// spinning thread would otherwise try to lock at once, and sleep.
  void changed(std::unique_lock<std::mutex>& held) {
    held.unlock();
    changes_.fetch_add(1, std::memory_order_release);
    wake_.notify_all();
  }

  void abort(const std::string& why) {
    auto held = lock();
    if (!aborted_)
      why_ = why;
    aborted_ = true;
    changed(held);
  }

  void require_going() const {
    if (aborted_)
      throw Aborted(why_);
  }

  /// Waits until `condition` holds. Throws Aborted.
  template <class Condition>
  void await(std::unique_lock<std::mutex>& held, const Condition& condition) {
    const auto deadline = Clock::now() + spin_time_;
    while (!aborted_ && !condition() && Clock::now() < deadline) {
      const auto seen = changes_.load(std::memory_order_relaxed);
      held.unlock();
      look_for_change(seen, deadline);
      held.lock();
    }
    wake_.wait(held, [&] { return aborted_ || condition(); });
    require_going();
  }

 private:
  void look_for_change(unsigned seen, Clock::time_point deadline) const {
    constexpr int looks_between_yields = 50;
    while (true) {
      for (int look = 0; look < looks_between_yields; ++look)
        if (changes_.load(std::memory_order_acquire) != seen)
          return;
      if (Clock::now() >= deadline)
        return;
      std::this_thread::yield();
    }
  }

  Clock::duration spin_time_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<unsigned> changes_{0};  // incremented after a change, without the mutex
  bool aborted_ = false;
  std::string why_;
};

/// Tensors under way from one rank to another. On a GPU they exist from the event `made` on.
struct SentTensors {
  Tensors tensors;
  Event made;
};

/// A member's input to a collective: a part for each member.
struct Contribution {
  std::vector<Tensors> tensors;
  Event made;
};

/// The transfers under way from one rank to another.
class Mailbox {
 public:
  explicit Mailbox(Clock::duration spin_time) : state_(spin_time) {}

  void put(const plan::InstructionKey& send, Tensors tensors, bool wait_until_taken) {
    SentTensors sent{std::move(tensors), Event::now()};
    auto lock = state_.lock();
    state_.require_going();
    sent_[send] = std::move(sent);
    state_.changed(lock);
    if (!wait_until_taken)
      return;
    lock.lock();
    state_.await(lock, [&] { return !sent_.contains(send); });
  }

  Tensors take(const plan::InstructionKey& send) {
    auto lock = state_.lock();
    state_.await(lock, [&] { return sent_.contains(send); });
    SentTensors sent = std::move(sent_.extract(send).mapped());
    state_.changed(lock);
    return adopt(std::move(sent.tensors), sent.made);
  }

  void abort(const std::string& why) { state_.abort(why); }

 private:
  Watched state_;
  std::map<plan::InstructionKey, SentTensors> sent_;
};

/// The contributions of a group's members, collective by collective. Two rounds take turns: a fast
/// member may enter the next collective while others still read this one's results. It cannot enter
/// the one after that before all have entered the next.
class Table {
 public:
  Table(std::size_t members, Clock::duration spin_time)
      : state_(spin_time), came_(members), rounds_{Round(members), Round(members)} {}

  std::vector<Tensors> all_to_all(std::size_t member, const std::vector<Tensors>& mine) {
    Contribution own{mine, Event::now()};
    std::vector<Contribution> spent;  // freed without the lock
    auto lock = state_.lock();
    state_.require_going();
    Round& round = rounds_[came_[member]++ % rounds_.size()];
    round.contributions[member] = std::move(own);
    if (++round.present == came_.size()) {
      state_.changed(lock);  // no member waits for an incomplete round
      lock.lock();
    } else {
      state_.await(lock, [&] { return round.present == came_.size(); });
    }
    std::vector<SentTensors> sent;
    for (const Contribution& theirs : round.contributions)
      sent.push_back({theirs.tensors[member], theirs.made});
    if (++round.left == came_.size())
      spent = std::exchange(round, Round(came_.size())).contributions;
    lock.unlock();
    std::vector<Tensors> all;
    for (SentTensors& each : sent)
      all.push_back(adopt(std::move(each.tensors), each.made));
    return all;
  }

  void abort(const std::string& why) { state_.abort(why); }

 private:
  struct Round {
    explicit Round(std::size_t members) : contributions(members) {}
    std::vector<Contribution> contributions;
    std::size_t present = 0, left = 0;
  };

  Watched state_;
  std::vector<std::size_t> came_;  // number of rounds that each member has entered
  std::array<Round, 2> rounds_;
};

/// Returns how long a rank spins before it sleeps; 0 if it would take a core from another rank.
Clock::duration spin_time_of(int ranks) {
  const bool cores_enough = ranks <= static_cast<int>(std::thread::hardware_concurrency());
  return std::chrono::milliseconds(cores_enough ? 20 : 0);
}

class InProcessTransport final : public Transport {
 public:
  InProcessTransport(int ranks, bool wait_until_taken)
      : ranks_(ranks), wait_until_taken_(wait_until_taken), spin_time_(spin_time_of(ranks)) {
    for (int box = 0; box < ranks * ranks; ++box)
      mailboxes_.push_back(std::make_unique<Mailbox>(spin_time_));
  }

  void send(const Transfer& transfer, Tensors tensors) override {
    mailbox(transfer).put(key_of(transfer.instruction), std::move(tensors), wait_until_taken_);
  }

  Tensors receive(const Transfer& transfer) override {
    return mailbox(transfer).take(key_of(plan::counterpart(transfer.instruction)));
  }

  std::vector<Tensors> all_to_all(const std::vector<int>& group, int rank,
                                  const std::vector<Tensors>& parts, Lane lane) override {
    const auto member = std::lower_bound(group.begin(), group.end(), rank) - group.begin();
    return table_of(group, lane).all_to_all(static_cast<std::size_t>(member), parts);
  }

  void require_going() override {
    const std::lock_guard lock(tables_mutex_);
    if (!why_.empty())
      throw Aborted(why_);
  }

  void abort(const std::string& why) override {
    const std::lock_guard lock(tables_mutex_);
    if (why_.empty())
      why_ = why;
    for (const auto& box : mailboxes_)
      box->abort(why_);
    for (const auto& [group, table] : tables_)
      table->abort(why_);
  }

 private:
  Mailbox& mailbox(const Transfer& transfer) {
    return *mailboxes_[static_cast<std::size_t>(transfer.from * ranks_ + transfer.to)];
  }

  Table& table_of(const std::vector<int>& group, Lane lane) {
    const std::lock_guard lock(tables_mutex_);
    auto& table = tables_[{lane, group}];
    if (!table) {
      table = std::make_unique<Table>(group.size(), spin_time_);
      if (!why_.empty())
        table->abort(why_);
    }
    return *table;
  }

  int ranks_;
  bool wait_until_taken_;
  Clock::duration spin_time_;
  std::vector<std::unique_ptr<Mailbox>> mailboxes_;  // by sender, then receiver
  std::mutex tables_mutex_;
  std::map<std::pair<Lane, std::vector<int>>, std::unique_ptr<Table>> tables_;
  std::string why_;  // reason of the abort; empty if there was none
};

}  // namespace

std::unique_ptr<Transport> make_in_process_transport(int ranks, bool wait_until_taken) {
  return std::make_unique<InProcessTransport>(ranks, wait_until_taken);
}

}  // namespace pipewright::exec
