#pragma once

// The state that the threads of a Watch share. It outlives the Watch if a thread has to be
// abandoned.

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>

#include "watch.hpp"

namespace pipewright::exec {

using Clock = std::chrono::steady_clock;

struct Watch::State {
  State(Site of, Store beats);

  /// Ends the job on this rank. `by` is the rank that reports the failure.
  void fail(int by, const std::string& why);
  /// Posts a failure for the other ranks. The first report that reaches the store becomes the
  /// job's.
  void post(const std::string& why);
  std::string report_on(int rank, const std::string& what) const;       // call with the lock held
  std::string report_on_lost(int rank, const std::string& what) const;  // call with the lock held
  std::string report_on_store(const std::string& what) const;           // call with the lock held
  bool waits_for(int rank) const;                                       // call with the lock held
  bool is_awaited(int rank) const;                                      // call with the lock held
  bool is_stuck() const;                                                // call with the lock held

  // The beater's loop.
  void beat_until_left();
  Heartbeat next_beat();
  void post_failure();
  void post_done();
  void take_in(const std::vector<std::vector<std::uint8_t>>& values);
  void look_for_silence();                       // call with the lock held
  void look_for_stall(Clock::duration elapsed);  // call with the lock held
  bool may_go(const Heartbeat& own);
  void pause(const Heartbeat& own);

  // The guard's loop.
  void guard_until_told();

  const Site site;
  const Store store;
  const Clock::duration tick;   // between two heartbeats
  const Clock::duration grace;  // the time in which a report under way must arrive
  std::atomic<std::uint64_t> activity;
  std::atomic<long> moves = 0;  // number of instructions begun and waits ended on this rank

  mutable std::mutex mutex;
  std::condition_variable changed;
  bool leaving = false;
  bool beater_done = false;
  bool guard_told = false;
  std::string note;  // for the other ranks, sent with each heartbeat
  bool to_tell_done = false;
  std::string to_post;  // this rank's report of a failure; empty if there is none
  bool failed = false;
  int reporter = -1;
  std::string why;
  Clock::time_point failed_at;
  long moves_when_failed = 0;
  std::vector<Heartbeat> beats;           // the latest of each rank
  std::vector<Clock::duration> silences;  // time since each rank's last sign of life
  std::map<int, std::string> suspects;    // ranks whose connection has ended, with the reason
  Clock::duration stillness{};            // time since any rank made progress
  long moves_of_all = 0;
  Clock::duration store_silence{};
  Clock::time_point last_beats;
  std::list<Wait> waits;

  std::mutex listeners_mutex;  // held while they are called; taken before `mutex`
  std::map<int, Listener> listeners;
  int next_listener = 0;
};

}  // namespace pipewright::exec
