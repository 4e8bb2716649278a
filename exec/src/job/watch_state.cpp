#include "watch_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "keys.hpp"
#include "stall.hpp"

namespace pipewright::exec {
namespace {

using std::chrono::milliseconds;

/// Limits the time between two looks at the clock: if this process was stopped itself, it must not
/// hold that against the others.
Clock::duration counted(Clock::duration elapsed, Clock::duration tick) {
  return std::min(elapsed, 2 * tick);
}

std::string silent_for(milliseconds time) {
  return fmt::format("has not been heard of for {}", in_seconds(time));
}

}  // namespace

Watch::State::State(Site of, Store to)
    : site(std::move(of)),
      store(std::move(to)),
      tick(std::min(milliseconds(250), site.timeout / 8)),
      grace(std::min(milliseconds(1000), site.timeout / 2)),
      activity(activity_of("its start")),
      beats(static_cast<std::size_t>(site.size)),
      silences(static_cast<std::size_t>(site.size)),
      last_beats(Clock::now()) {
  for (Heartbeat& beat : beats)
    beat.at = "its start";
}

void Watch::State::fail(int by, const std::string& reason) {
  const std::lock_guard calls(listeners_mutex);
  {
    const std::lock_guard lock(mutex);
    if (failed)
      return;
    failed = true;
    failed_at = Clock::now();
    moves_when_failed = moves.load(std::memory_order_relaxed);
    reporter = by;
    why = reason;
  }
  changed.notify_all();
  for (const auto& [id, listener] : listeners)
    listener(reason);
}

void Watch::State::post(const std::string& reason) {
  {
    std::unique_lock lock(mutex);
    if (to_post.empty())
      to_post = reason;
    changed.notify_all();
    changed.wait_for(lock, grace, [&] { return failed; });
  }
  fail(site.rank, reason);  // where the store does not answer
}

std::string Watch::State::report_on(int rank, const std::string& what) const {
  std::vector<Heartbeat> latest = beats;
  Heartbeat& own = latest[static_cast<std::size_t>(site.rank)];
  own.waits.assign(waits.begin(), waits.end());
  return failure_report(rank, what, latest);
}

std::string Watch::State::report_on_lost(int rank, const std::string& what) const {
  const bool left = beats[static_cast<std::size_t>(rank)].left;
  return report_on(
      rank, left ? "has left the job" : fmt::format("cannot be reached any more ({})", what));
}

std::string Watch::State::report_on_store(const std::string& what) const {
  const std::string name = "the job's store at " + site.store_name;
  if (site.store_rank < 0)
    return name + " " + what;
  return report_on(site.store_rank, fmt::format("{} (it hosts {})", what, name));
}

void Watch::State::beat_until_left() {
  std::vector<std::string> keys{keys::failure};
  for (int rank = 0; rank < site.size; ++rank)
    keys.push_back(keys::beat(rank));
  try {
    while (true) {
      const Heartbeat own = next_beat();
      store->set(keys::beat(site.rank), to_text(own));
      post_failure();
      post_done();
      take_in(store->multiGet(keys));
      if (may_go(own))
        break;
      pause(own);
    }
  } catch (const std::exception&) {
    std::unique_lock lock(mutex);
    const std::string report = report_on_store("is gone");
    lock.unlock();
    fail(site.rank, report);
  }
  const std::lock_guard lock(mutex);
  beater_done = true;
  changed.notify_all();
}

Heartbeat Watch::State::next_beat() {
  const std::lock_guard lock(mutex);
  Heartbeat& own = beats[static_cast<std::size_t>(site.rank)];
  const std::uint64_t now_at = activity.load(std::memory_order_relaxed);
  own = {.count = own.count + 1,
         .at = activity_text(now_at),
         .in_action = is_action(now_at),
         .moves = moves.load(std::memory_order_relaxed),
         .waits = {waits.begin(), waits.end()},
         .note = note,
         .left = leaving};
  return own;
}

void Watch::State::post_failure() {
  std::unique_lock lock(mutex);
  if (failed || to_post.empty())
    return;
  const std::string report = fmt::format("{} {}", site.rank, to_post);
  lock.unlock();
  store->compareSet(keys::failure, keys::no_failure, report);
}

void Watch::State::post_done() {
  std::unique_lock lock(mutex);
  if (!std::exchange(to_tell_done, false))
    return;
  lock.unlock();
  store->set(keys::done, "1");
}

void Watch::State::take_in(const std::vector<std::vector<std::uint8_t>>& values) {
  const std::string failure(values.front().begin(), values.front().end());
  if (failure != keys::no_failure) {
    const auto space = failure.find(' ');
    fail(std::stoi(failure.substr(0, space)), failure.substr(space + 1));
  }
  const std::lock_guard lock(mutex);
  store_silence = {};
  const auto now = Clock::now();
  const auto elapsed = counted(now - last_beats, tick);
  last_beats = now;
  for (std::size_t rank = 0; rank < beats.size(); ++rank) {
    if (static_cast<int>(rank) == site.rank)
      continue;
    Heartbeat beat = beat_from_text({values[rank + 1].begin(), values[rank + 1].end()});
    // A rank that has left is missed only if this rank waits for it.
    const bool well =
        beat.left ? !waits_for(static_cast<int>(rank)) : beat.count != beats[rank].count;
    silences[rank] = well ? Clock::duration{} : silences[rank] + elapsed;
    beats[rank] = std::move(beat);
  }
  look_for_silence();
  look_for_stall(elapsed);
}

void Watch::State::look_for_silence() {
  for (const auto& [rank, what] : suspects)
    if (silences[static_cast<std::size_t>(rank)] >
            std::min<Clock::duration>(3 * grace, site.timeout) &&
        to_post.empty())
      to_post = report_on_lost(rank, what);
  const auto longest = std::ranges::max_element(silences) - silences.begin();
  const auto index = static_cast<std::size_t>(longest);
  if (silences[index] > site.timeout && to_post.empty())
    to_post = report_on(static_cast<int>(longest),
                        beats[index].left ? "has left the job" : silent_for(site.timeout));
}

void Watch::State::look_for_stall(Clock::duration elapsed) {
  long sum = 0;
  for (const Heartbeat& beat : beats)
    sum += beat.moves;
  stillness = sum == moves_of_all ? stillness + elapsed : Clock::duration{};
  moves_of_all = sum;
  if (site.stall.count() > 0 && stillness > site.stall && to_post.empty() &&
      tells_of_stall(site.rank, beats))
    to_post = stall_report(beats, site.stall);
}

/// Returns true if this rank does not react to the job's end: its action does not end.
bool Watch::State::is_stuck() const {
  return failed && !leaving && is_action(activity.load(std::memory_order_relaxed)) &&
         moves.load(std::memory_order_relaxed) == moves_when_failed &&
         Clock::now() - failed_at > site.timeout;
}

bool Watch::State::waits_for(int rank) const {
  return std::ranges::any_of(waits, [&](const Wait& wait) {
    return std::ranges::find(wait.ranks, rank) != wait.ranks.end();
  });
}

/// Returns true if the rank may still use the store: to read the report of a failure, or because it
/// keeps working.
bool Watch::State::is_awaited(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  return !beats[index].left && !(failed && silences[index] > site.timeout);
}

bool Watch::State::may_go(const Heartbeat& own) {
  const std::lock_guard lock(mutex);
  if (!own.left || site.rank != site.store_rank || (failed && Clock::now() - failed_at > grace))
    return own.left;
  for (int rank = 0; rank < site.size; ++rank)
    if (is_awaited(rank))
      return false;
  return true;
}

void Watch::State::pause(const Heartbeat& own) {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, tick,
                   [&] { return (leaving && !own.left) || (!to_post.empty() && !failed); });
}

void Watch::State::guard_until_told() {
  auto last = Clock::now();
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, tick, [&] { return guard_told; })) {
    const auto now = Clock::now();
    store_silence += counted(now - last, tick);
    last = now;
    if (site.when_stuck && is_stuck()) {
      lock.unlock();
      return site.when_stuck(why);
    }
    if (store_silence <= site.timeout || beater_done || failed)
      continue;
    const std::string report = report_on_store(silent_for(site.timeout));
    lock.unlock();
    fail(site.rank, report);
    lock.lock();
  }
}

}  // namespace pipewright::exec
