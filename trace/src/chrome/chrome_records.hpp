#pragma once

// What Chrome traces hold, gathered event by event; chrome_table.hpp makes a table of it.

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

/// Numbers for texts, in the order in which they come.
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

/// Grows without moving what is there: a vector needs three times its size for a moment.
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

/// Where it is said what happened to events: those of the first that are wrong, and how many more.
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
  std::optional<int> rank{};                // of a distributed run
  std::optional<int> world_size{};          // … and how many ranks that has
  std::optional<std::int64_t> base_time{};  // ns, what its times count from
  std::string distributed{};                // "distributedInfo" as it stands there
};

struct ChromeProcess {
  std::uint32_t file = 0;
  std::string id;  // 12, "Spans"
  std::string name{}, label{};
  double sort_index = 0;
};

/// What a thread shows. Actions of a pipeline and marks of steps get threads of their own: ranges
/// on the host around what a rank does, and their twins around what its device makes of them.
enum class Shows { Calls, Actions, DeviceActions, Steps, DeviceSteps };

/// The track of the twins of `plan::steps_track`.
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
  std::vector<Open> open{};  // begun and not ended
};

struct ChromeSpan {
  double start = 0;     // µs from the first event that was read
  double duration = 0;  // µs
  std::uint32_t name = 0;
  std::uint32_t thread = 0;
};

struct ChromeSample {
  double time = 0;  // µs, as above
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

  /// Whether the arguments of spans may still tell of which step they are.
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

  /// What the name of a range says.
  struct Named {
    enum class Kind { Call, Action, Step } kind = Kind::Call;
    std::uint32_t action = 0;  // its name
    plan::Row row = plan::Row::Compute;
  };
  const Named& meaning_of(std::uint32_t range);

  std::optional<std::int64_t> first_;           // µs
  double last_ = 0;                             // µs, as in ChromeSpan
  std::vector<std::optional<Named>> meanings_;  // by the name of a range

  /// The steps of which the arguments of spans tell, of this file, by process and number.
  struct Interval {
    double start = 0, end = 0;  // µs, as in ChromeSpan
  };
  std::map<std::pair<std::uint32_t, std::int64_t>, Interval> steps_;
  bool looks_for_steps_ = true;
  int spans_without_step_ = 0;
  bool has_step_ranges_ = false;
  Numbering process_ids_, thread_ids_;  // of all files
  std::string id_;                      // where one is put together
  std::uint32_t file_ = 0;

  struct Recent {
    std::string process = "?", thread = "?";  // as no event has them
    std::uint32_t number = 0;
  };
  std::array<Recent, 4> recent_;
  std::size_t oldest_ = 0;
};

}  // namespace pipewright::trace
