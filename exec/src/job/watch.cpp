#include "watch.hpp"

#include <fmt/format.h>

#include <numeric>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "pipewright/exec/aborted.hpp"
#include "watch_state.hpp"

namespace pipewright::exec {

Watch::Watch(Site site, Store beats, Store calls)
    : state_(std::make_shared<State>(std::move(site), std::move(beats))), calls_(std::move(calls)) {
  beater_ = std::thread([state = state_] { state->beat_until_left(); });
  guard_ = std::thread([state = state_] { state->guard_until_told(); });
}

Watch::~Watch() {
  std::unique_lock lock(state_->mutex);
  state_->leaving = true;
  state_->changed.notify_all();
  const auto given_up = [&] {
    return state_->failed && (state_->store_silence > state_->site.timeout ||
                              Clock::now() - state_->failed_at > 2 * state_->grace);
  };
  while (!state_->beater_done && !given_up())
    state_->changed.wait_for(lock, state_->tick);
  const bool done = state_->beater_done;
  state_->guard_told = true;
  state_->changed.notify_all();
  lock.unlock();
  guard_.join();
  // A call to a dead host may never return. The thread owns what it uses and ends with the process.
  if (done)
    beater_.join();
  else
    beater_.detach();
}

Watch::Store Watch::store(const std::string& prefix) const {
  return c10::make_intrusive<c10d::PrefixStore>(prefix, calls_);
}

void Watch::doing(std::uint64_t activity) {
  state_->activity.store(activity, std::memory_order_relaxed);
  state_->moves.fetch_add(1, std::memory_order_relaxed);
}

void Watch::tell(std::string note) {
  const std::lock_guard lock(state_->mutex);
  state_->note = std::move(note);
}

void Watch::tell_done() {
  const std::lock_guard lock(state_->mutex);
  state_->to_tell_done = true;
}

std::vector<std::string> Watch::told() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<std::string> notes;
  for (const Heartbeat& beat : state_->beats)
    notes.push_back(beat.note);
  notes[static_cast<std::size_t>(state_->site.rank)] = state_->note;
  return notes;
}

void Watch::abort(const std::string& why) { state_->post(why); }

void Watch::lost(int rank, const std::string& what) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, state_->grace, [&] { return state_->failed; });
  const std::string report = state_->report_on_lost(rank, what);
  lock.unlock();
  state_->post(report);
  lock.lock();
  throw Aborted(state_->why);
}

void Watch::await_cause() const {
  {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait_for(lock, state_->grace, [&] { return state_->failed; });
  }
  require_going();
}

void Watch::suspect(int rank, const std::string& what) {
  const std::lock_guard lock(state_->mutex);
  state_->suspects.emplace(rank, what);
}

void Watch::require_going() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->failed)
    throw Aborted(state_->why);
}

bool Watch::reports_failure() const {
  const std::lock_guard lock(state_->mutex);
  return state_->failed && state_->reporter == state_->site.rank;
}

void Watch::run_interruptibly(const std::string& where, std::function<void()> body) {
  struct Outcome {
    bool done = false;
    std::exception_ptr error;
  };
  const auto outcome = std::make_shared<Outcome>();
  std::vector<int> all(static_cast<std::size_t>(state_->site.size));
  std::iota(all.begin(), all.end(), 0);
  const Waiting waiting(*this, std::move(all), where);
  std::thread([state = state_, outcome, body = std::move(body)] {
    std::exception_ptr error;
    try {
      body();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(state->mutex);
    *outcome = {true, error};
    state->changed.notify_all();
  }).detach();
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return outcome->done || state_->failed; });
  if (!outcome->done)
    throw Aborted(state_->why);
  if (outcome->error)
    std::rethrow_exception(outcome->error);
}

int Watch::on_failure(Listener listener) {
  const std::lock_guard calls(state_->listeners_mutex);
  bool failed = false;
  {
    const std::lock_guard lock(state_->mutex);
    failed = state_->failed;
  }
  if (failed)
    listener(state_->why);
  state_->listeners[state_->next_listener] = std::move(listener);
  return state_->next_listener++;
}

void Watch::forget(int listener) {
  const std::lock_guard calls(state_->listeners_mutex);
  state_->listeners.erase(listener);
}

Watch::Waiting::Waiting(Watch& watch, std::vector<int> ranks, std::string where) : watch_(watch) {
  const std::lock_guard lock(watch_.state_->mutex);
  place_ =
      watch_.state_->waits.insert(watch_.state_->waits.end(), {std::move(ranks), std::move(where)});
  watch_.state_->moves.fetch_add(1, std::memory_order_relaxed);
}

Watch::Waiting::~Waiting() {
  const std::lock_guard lock(watch_.state_->mutex);
  watch_.state_->waits.erase(place_);
  watch_.state_->moves.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace pipewright::exec
