#pragma once

// Failure detection among the ranks of a job. One thread, the beater, talks to the store: it posts
// this rank's heartbeat, and reads the others' heartbeats and whether a rank has failed. A host
// that is stopped or cut off blocks the beater forever, so a second thread, the guard, watches the
// clock.

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
    int store_rank = -1;     // the rank that hosts the store; -1 if the launcher does
    std::chrono::milliseconds timeout{};
    std::chrono::milliseconds stall{};                       // 0: never
    std::function<void(const std::string& why)> when_stuck;  // may be empty
  };

  /// Takes two connections to a store in which all ranks have posted a first heartbeat. Only the
  /// beater uses `beats`, because a call may block a connection for long.
  Watch(Site site, Store beats, Store calls);
  ~Watch();

  /// Returns a store for calls within `run_interruptibly`, with keys that start with `prefix`.
  /// Calls have no timeout; the job's end interrupts them.
  Store store(const std::string& prefix) const;

  void doing(std::uint64_t activity);
  void tell(std::string note);
  std::vector<std::string> told() const;
  /// Records in the store that the job has done its work, before this rank leaves it. Standby
  /// processes wait for that.
  void tell_done();

  void abort(const std::string& why);
  /// Reports a failed connection to `rank`. First waits a moment for the cause, because the peer
  /// may have ended after another rank's failure. Throws Aborted.
  [[noreturn]] void lost(int rank, const std::string& what);
  /// Waits a moment for the report of a failure that may have caused what this rank has noticed.
  /// Throws Aborted if it arrives.
  void await_cause() const;
  /// Records that a connection to `rank` has ended on which nothing was expected. Unless the rank
  /// posts another heartbeat or has left the job, it is lost, and the job fails within seconds.
  void suspect(int rank, const std::string& what);
  void require_going() const;
  bool reports_failure() const;

  /// Runs `body`, which needs all ranks, on its own thread and waits for it or for the job's end.
  /// In the latter case throws Aborted and abandons the thread, which may be blocked forever in a
  /// call to a dead host; so `body` must own what it uses. `where` is for reports.
  void run_interruptibly(const std::string& where, std::function<void()> body);

  /// Calls `listener` once, with the reason, when the job fails; at once if it has failed. After
  /// `forget`, called with the result, returns, the listener is never called again.
  using Listener = std::function<void(const std::string& why)>;
  int on_failure(Listener listener);
  void forget(int listener);

  /// Makes reports say that this rank waits, while it lives.
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
  struct State;  // shared with threads that may have to be abandoned

  std::shared_ptr<State> state_;
  Store calls_;
  std::thread beater_;
  std::thread guard_;
};

/// Encodes an activity in one word, so that reporting it costs one store to memory.
std::uint64_t activity_of(const plan::Instruction& instruction);
/// Encodes a fused pair, or only the first action if a number is too large for half a word.
std::uint64_t activity_of(const plan::Instruction& first, const plan::Instruction& second);
std::uint64_t activity_of(const char* phase);
bool is_action(std::uint64_t activity);
std::string activity_text(std::uint64_t activity);

}  // namespace pipewright::exec
