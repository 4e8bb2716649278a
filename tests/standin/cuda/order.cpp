#include "order.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "../standin.hpp"

namespace standin {
namespace {

struct Use {
  std::uint32_t stream = 0;
  std::uint64_t position = 0;
  const char* what = nullptr;  // null if there was no such use
};

/// A range of memory that begins at its key in `cells`, with the same uses for all bytes.
struct Cell {
  std::uintptr_t end = 0;
  Use write{};
  std::vector<Use> reads{};  // reads after the write, one for each stream
};

struct State {
  std::mutex mutex;
  Clock host;
  std::map<std::uintptr_t, Cell> cells;
  std::string reports;
  std::set<std::string> told;
};

/// Never destroyed, because streams work until the process ends.
State& state() {
  static State* const one = new State;
  return *one;
}

std::uint64_t at(const Clock& clock, std::uint32_t stream) {
  return stream < clock.size() ? clock[stream] : 0;
}

bool is_before(const Use& use, std::uint32_t stream, const Clock& own) {
  return use.what == nullptr || use.stream == stream || use.position <= at(own, use.stream);
}

void report_locked(const std::string& text) {
  if (!state().told.insert(text).second)
    return;
  static const int registered = std::atexit([] {
    if (!state().reports.empty())
      _exit(exit_code_of_reports);
  });
  static_cast<void>(registered);
  state().reports += text + "\n";
  std::fprintf(stderr, "stand-in: %s\n", text.c_str());
}

std::string text_of(const Use& use, const char* does) {
  return std::string(use.what) + " on stream " + std::to_string(use.stream) + " " + does;
}

void report_race(const Use& earlier, bool wrote, const Use& later, bool writes) {
  report_locked("race: " + text_of(later, writes ? "writes" : "reads") + " what " +
                text_of(earlier, wrote ? "writes" : "reads") + ", and nothing orders them");
}

void split_at(std::uintptr_t place) {
  auto& cells = state().cells;
  auto next = cells.upper_bound(place);
  if (next == cells.begin())
    return;
  auto& [begin, cell] = *std::prev(next);
  if (begin == place || cell.end <= place)
    return;
  Cell rest = cell;
  cell.end = place;
  cells.emplace_hint(next, place, std::move(rest));
}

/// Splits cells so that they match this range exactly, and calls `each` for those that were used.
template <class Each>
void go_over(std::uintptr_t begin, std::uintptr_t end, const Each& each) {
  split_at(begin);
  split_at(end);
  auto& cells = state().cells;
  for (auto cell = cells.lower_bound(begin); cell != cells.end() && cell->first < end; ++cell)
    each(cell->second);
}

void erase(std::uintptr_t begin, std::uintptr_t end) {
  auto& cells = state().cells;
  cells.erase(cells.lower_bound(begin), cells.lower_bound(end));
}

void write(const Use& own, const Clock& clock, std::uintptr_t begin, std::uintptr_t end) {
  go_over(begin, end, [&](const Cell& cell) {
    if (!is_before(cell.write, own.stream, clock))
      report_race(cell.write, true, own, true);
    for (const Use& read : cell.reads)
      if (!is_before(read, own.stream, clock))
        report_race(read, false, own, true);
  });
  erase(begin, end);
  state().cells[begin] = {end, own};
}

void read(const Use& own, const Clock& clock, std::uintptr_t begin, std::uintptr_t end) {
  std::uintptr_t next = begin;
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> unused;
  go_over(begin, end, [&](Cell& cell) {
    if (!is_before(cell.write, own.stream, clock))
      report_race(cell.write, true, own, false);
    const auto same = std::find_if(cell.reads.begin(), cell.reads.end(),
                                   [&](const Use& use) { return use.stream == own.stream; });
    if (same == cell.reads.end())
      cell.reads.push_back(own);
    else
      *same = own;
  });
  auto& cells = state().cells;
  for (auto cell = cells.lower_bound(begin); cell != cells.end() && cell->first < end; ++cell) {
    if (cell->first > next)
      unused.emplace_back(next, cell->first);
    next = cell->second.end;
  }
  if (next < end)
    unused.emplace_back(next, end);
  for (const auto& [from, to] : unused)
    cells[from] = {to, {}, {own}};
}

}  // namespace

void merge(Clock& own, const Clock& other) {
  own.resize(std::max(own.size(), other.size()));
  for (std::size_t s = 0; s < other.size(); ++s)
    own[s] = std::max(own[s], other[s]);
}

void come_to_work(std::uint32_t number, Clock& own, const std::vector<Access>& accesses) {
  const std::lock_guard lock(state().mutex);
  merge(own, state().host);
  own.resize(std::max<std::size_t>(own.size(), number + 1));
  ++own[number];
  for (const Access& access : accesses) {
    if (access.bytes == 0)
      continue;
    const auto begin = reinterpret_cast<std::uintptr_t>(access.memory);
    const Use use{number, own[number], access.what};
    (access.writes ? write : read)(use, own, begin, begin + access.bytes);
  }
}

void host_has_waited(const Clock& point) {
  const std::lock_guard lock(state().mutex);
  merge(state().host, point);
}

void come_to_free(std::uint32_t number, const Clock& own, const void* memory, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  Clock known = own;
  merge(known, state().host);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const auto check = [&](const Use& use, const char* does) {
    if (!is_before(use, number, known))
      report_locked("free before use: memory of stream " + std::to_string(number) +
                    " is given free, and " + text_of(use, does) + " it, and nothing orders them");
  };
  go_over(begin, begin + bytes, [&](const Cell& cell) {
    check(cell.write, "writes");
    for (const Use& use : cell.reads)
      check(use, "reads");
  });
  erase(begin, begin + bytes);
}

void forget(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  split_at(begin);
  split_at(begin + bytes);
  erase(begin, begin + bytes);
}

void report(const std::string& text) {
  const std::lock_guard lock(state().mutex);
  report_locked(text);
}

std::string take_reports() {
  const std::lock_guard lock(state().mutex);
  state().told.clear();
  return std::exchange(state().reports, "");
}

}  // namespace standin

void pipewright_standin_take_reports(char* text, std::size_t size) {
  const std::string reports = standin::take_reports().substr(0, size - 1);
  reports.copy(text, reports.size());
  text[reports.size()] = '\0';
}
