#pragma once

// Looks after the ranks of a job. One thread, the beater, talks to the store: it posts what this
// rank does, reads what the others do and whether one has failed. A host that is stopped or cut off
// leaves it waiting without end, so a second one, the guard, looks at the clock.

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "pipewright/exec/job/job.hpp"
#include "report.hpp"

namespace pipewright::exec {

class Watch {
 public:
  using Store = c10::intrusive_ptr<c10d::Store>;

  struct Site {
    int rank = 0;
    int size = 1;
    std::string store_name;  // for messages
    int store_rank = -1;     // that hosts the store; -1: the launcher does
    std::chrono::milliseconds timeout{};
    std::chrono::milliseconds stall{};                       // 0: never
    std::function<void(const std::string& why)> when_stuck;  // may be empty
  };

  /// Two connections to a store in which all ranks have posted a first beat. The beater alone uses
  /// `beats`, as a call may keep its connection for long.
  Watch(Site site, Store beats, Store calls);
  ~Watch();

  /// For calls within `run_interruptibly`, with keys that start with `prefix`. They wait as long as
  /// they have to: it is the job that ends them.
  Store store(const std::string& prefix) const;

  void doing(std::uint64_t activity);
  void tell(std::string note);
  std::vector<std::string> told() const;
  /// For those that wait for the end of the job: it has done its work. Stands in the store before
  /// this rank leaves.
  void tell_done();

  void abort(const std::string& why);
  /// To be called when the connection to `rank` has failed: gives the cause a moment to arrive, as
  /// the peer may have ended because of another's failure. Throws Aborted.
  [[noreturn]] void lost(int rank, const std::string& what);
  /// Gives the report of a failure a moment to arrive that may be the cause of what has been seen
  /// here. Throws Aborted if it does.
  void await_cause() const;
  /// A connection to `rank` has ended, over which nothing was to come: unless the rank is heard of
  /// or has left, it is gone, and the job fails within seconds.
  void suspect(int rank, const std::string& what);
  void require_going() const;
  bool reports_failure() const;

  /// Runs `body`, which needs all ranks, on a thread of its own and waits for it, or for the end of
  /// the job: then throws Aborted and leaves the thread behind, which may be stuck for ever in a
  /// call to a dead host. What it uses it must own. `where` is for reports.
  void run_interruptibly(const std::string& where, std::function<void()> body);

  /// Called once, with the reason, when the job fails; at once if it has. The result is for
  /// `forget`, after whose return it is not called any more.
  using Listener = std::function<void(const std::string& why)>;
  int on_failure(Listener listener);
  void forget(int listener);

  /// While it lives, reports say that this rank waits.
  class Waiting {
   public:
    Waiting(Watch& watch, std::vector<int> ranks, std::string where);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Watch& watch_;
    std::list<Wait>::iterator place_;
  };

 private:
  struct State;  // shared with threads that may have to be left behind

  std::shared_ptr<State> state_;
  Store calls_;
  std::thread beater_;
  std::thread guard_;
};

/// Activities in one word, so that telling them costs one store to memory.
std::uint64_t activity_of(const plan::Instruction& instruction);
/// A fused pair; the first alone where its numbers are too large for half a word.
std::uint64_t activity_of(const plan::Instruction& first, const plan::Instruction& second);
std::uint64_t activity_of(const char* phase);
bool is_action(std::uint64_t activity);
std::string activity_text(std::uint64_t activity);

}  // namespace pipewright::exec
