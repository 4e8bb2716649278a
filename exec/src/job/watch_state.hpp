#pragma once

// What the threads of a Watch share. It outlives the Watch where a thread has to be left behind.

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>

#include "watch.hpp"

namespace pipewright::exec {

using Clock = std::chrono::steady_clock;

struct Watch::State {
  State(Site of, Store beats);

  /// Ends the job on this rank. `by`: the rank whose report it is.
  void fail(int by, const std::string& why);
  /// Asks the beater to tell the others; the first report that reaches the store comes back.
  void post(const std::string& why);
  std::string report_on(int rank, const std::string& what) const;       // call with the lock held
  std::string report_on_lost(int rank, const std::string& what) const;  // call with the lock held
  std::string report_on_store(const std::string& what) const;           // call with the lock held
  bool waits_for(int rank) const;                                       // call with the lock held
  bool is_awaited(int rank) const;                                      // call with the lock held
  bool is_stuck() const;                                                // call with the lock held

  // The beater's loop.
  void beat_until_left();
  Beat next_beat();
  void post_failure();
  void post_done();
  void take_in(const std::vector<std::vector<std::uint8_t>>& values);
  void look_for_silence();                       // call with the lock held
  void look_for_stall(Clock::duration elapsed);  // call with the lock held
  bool may_go(const Beat& own);
  void pause(const Beat& own);

  // The guard's loop.
  void guard_until_told();

  const Site site;
  const Store store;
  const Clock::duration tick;   // between two beats
  const Clock::duration grace;  // for what must be on its way already
  std::atomic<std::uint64_t> activity;
  std::atomic<long> moves = 0;  // how often this rank has begun something or ended a wait

  mutable std::mutex mutex;
  std::condition_variable changed;
  bool leaving = false;
  bool beater_done = false;
  bool guard_told = false;
  std::string note;  // for the others, with each beat
  bool to_tell_done = false;
  std::string to_post;  // our report of a failure; empty: none
  bool failed = false;
  int reporter = -1;
  std::string why;
  Clock::time_point failed_at;
  long moves_when_failed = 0;
  std::vector<Beat> beats;                // the latest, by rank
  std::vector<Clock::duration> silences;  // for how long nothing can be expected of a rank
  std::map<int, std::string> suspects;    // whose connection has ended, and what it said
  Clock::duration stillness{};            // for how long no rank has moved
  long moves_of_all = 0;
  Clock::duration store_silence{};
  Clock::time_point last_beats;
  std::list<Wait> waits;

  std::mutex listeners_mutex;  // held while they are called; taken before `mutex`
  std::map<int, Listener> listeners;
  int next_listener = 0;
};

}  // namespace pipewright::exec
