#pragma once

// The contents of Chrome traces, gathered event by event; chrome_table.hpp converts them into a
// table.

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chrome/chrome_event.hpp"
#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::trace {

/// Assigns numbers to texts, in the order of their first occurrence.
class Numbering {
 public:
  std::uint32_t number_of(std::string_view text);
  std::uint32_t size() const { return static_cast<std::uint32_t>(texts_.size()); }
  const std::string& text(std::uint32_t number) const { return *texts_[number]; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
  std::vector<const std::string*> texts_;
};

/// Grows without moving its elements: a growing vector needs three times its size for a moment.
template <class Value>
class Blocks {
 public:
  void push_back(const Value& value) {
    if (size_ % block_size == 0)
      blocks_.push_back(std::make_unique_for_overwrite<Value[]>(block_size));
    blocks_.back()[size_++ % block_size] = value;
  }
  std::size_t size() const { return size_; }
  const Value& operator[](std::size_t at) const {
    return blocks_[at / block_size][at % block_size];
  }

 private:
  static constexpr std::size_t block_size = std::size_t{1} << 15U;
  std::vector<std::unique_ptr<Value[]>> blocks_;
  std::size_t size_ = 0;
};

/// Reports invalid events: the first few in full, then the number of the others.
class ProblemList {
 public:
  explicit ProblemList(std::vector<std::string>& problems) : problems_(problems) {}
  void begin_file(std::string file);
  void skipped(std::uint64_t offset, std::string_view why);
  void note(std::string_view what);
  void end_file();

 private:
  std::vector<std::string>& problems_;
  std::string file_;
  std::uint64_t skipped_ = 0;
};

struct ChromeFile {
  std::string name;
  std::optional<int> rank{};                // in a distributed run
  std::optional<int> world_size{};          // number of ranks of that run
  std::optional<std::int64_t> base_time{};  // nanoseconds since 1970 at which its times begin
  std::string distributed{};                // "distributedInfo" as written
};

struct ChromeProcess {
  std::uint32_t file = 0;
  std::string id;  // 12, "Spans"
  std::string name{}, label{};
  double sort_index = 0;
};

/// The content of a thread. Pipeline actions and step marks get threads of their own: ranges on the
/// host around a rank's work, and their device counterparts around the work that the device does
/// for them.
enum class Shows { Calls, Actions, DeviceActions, Steps, DeviceSteps };

/// The track with the device's counterparts of `plan::steps_track`.
inline constexpr const char* device_steps_track = "steps on the device";

struct ChromeThread {
  std::uint32_t process = 0;
  std::string id;
  std::string name{};
  double sort_index = 0;
  Shows shows = Shows::Calls;
  plan::Row row = plan::Row::Compute;

  struct Open {
    double start = 0;
    std::uint32_t name = 0;
  };
  std::vector<Open> open{};  // begun and not yet ended
};

struct ChromeSpan {
  double start = 0;     // µs since the first event that was read
  double duration = 0;  // µs
  std::uint32_t name = 0;
  std::uint32_t thread = 0;
};

struct ChromeSample {
  double time = 0;  // µs since the first event that was read
  std::int64_t bytes = 0;
  std::uint32_t process = 0;
  std::uint32_t counter = 0;
};

class ChromeRecords {
 public:
  explicit ChromeRecords(std::vector<std::string>& found) : problems(found) {}

  void begin_file(const std::string& name);
  void take(const ChromeEvent& event);
  void end_file();

  /// Returns true while the arguments of spans may still contain step numbers.
  bool looks_for_steps() const { return looks_for_steps_; }

  ProblemList problems;
  std::vector<ChromeFile> files;
  std::vector<ChromeProcess> processes;
  std::vector<ChromeThread> threads;
  Blocks<ChromeSpan> spans;
  std::vector<ChromeSample> samples;
  Numbering names;     // of events
  Numbering counters;  // of memory

 private:
  void take_span(const ChromeEvent& event);
  void take_begin(const ChromeEvent& event);
  void take_end(const ChromeEvent& event);
  void take_counter(const ChromeEvent& event);
  void take_memory(const ChromeEvent& event);
  void take_metadata(const ChromeEvent& event);
  void add_span(const ChromeEvent& event, const ChromeSpan& span);
  void add_action(const ChromeEvent& event, ChromeSpan span);
  void add_to_step(const ChromeEvent& event, const ChromeSpan& span);
  void add_steps_by_arguments();
  std::uint32_t own_thread(std::uint32_t process, const std::string& of_device, Shows shows,
                           plan::Row row);
  void add_sample(const ChromeEvent& event, const std::string& counter, double bytes);

  std::uint32_t process_of(const ChromeEvent& event);
  std::uint32_t thread_of(const ChromeEvent& event);
  std::optional<double> start_of(const ChromeEvent& event);

  /// The meaning of a range's name.
  struct Named {
    enum class Kind { Call, Action, Step } kind = Kind::Call;
    std::uint32_t action = 0;  // name of the action
    plan::Row row = plan::Row::Compute;
  };
  const Named& meaning_of(std::uint32_t range);

  std::optional<std::int64_t> first_;           // µs
  double last_ = 0;                             // µs, as in ChromeSpan
  std::vector<std::optional<Named>> meanings_;  // by the name of a range

  /// The steps of this file found in the arguments of spans, by process and step number.
  struct Interval {
    double start = 0, end = 0;  // µs, as in ChromeSpan
  };
  std::map<std::pair<std::uint32_t, std::int64_t>, Interval> steps_;
  bool looks_for_steps_ = true;
  int spans_without_step_ = 0;
  bool has_step_ranges_ = false;
  Numbering process_ids_, thread_ids_;  // of all files
  std::string id_;                      // buffer for a composed id
  std::uint32_t file_ = 0;

  struct Recent {
    std::string process = "?", thread = "?";  // initial value that no event has
    std::uint32_t number = 0;
  };
  std::array<Recent, 4> recent_;
  std::size_t oldest_ = 0;
};

}  // namespace pipewright::trace
