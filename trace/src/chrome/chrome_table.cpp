#include "chrome/chrome_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "pipewright/plan/timeline/timeline_facts.hpp"
#include "pipewright/trace/chrome/chrome_trace.hpp"

namespace pipewright::trace {
namespace {

/// Times are written in µs with three digits: events that overlap by no more than this do not
/// overlap.
constexpr double rounding = 2e-3;  // µs
constexpr std::size_t most_levels = 256;

/// Sorts 12 before 100 before "Spans".
std::pair<double, std::string> in_numbers(const std::string& id) {
  double number = 0;
  const auto read = std::from_chars(id.data(), id.data() + id.size(), number);
  if (read.ec != std::errc() || std::isnan(number))
    number = std::numeric_limits<double>::infinity();
  return {number, id};
}

std::string plain_id(const std::string& id) {
  return id.size() >= 2 && id.front() == '"' ? id.substr(1, id.size() - 2) : id;
}

// ---- ranks

/// The processes shown as one rank: those of a file of a distributed run, otherwise a single
/// process.
struct Unit {
  std::uint32_t file = 0;
  std::string name;
};

class Units {
 public:
  explicit Units(const ChromeRecords& records)
      : records_(records), one_process_acts_(find_actions()), of_(records.processes.size()) {
    std::vector<bool> is_used(records.processes.size());
    for (std::size_t span = 0; span < records.spans.size(); ++span)
      is_used[records.threads[records.spans[span].thread].process] = true;
    for (const ChromeSample& sample : records.samples)
      is_used[sample.process] = true;
    for (const std::uint32_t process : in_order())
      if (is_used[process])
        add(process);
  }

  const std::vector<Unit>& all() const { return units_; }
  /// The process must have events.
  int rank_of(std::uint32_t process) const { return of_[process]; }

 private:
  /// Returns true if all processes of a file are one rank.
  bool is_rank(std::uint32_t file) const {
    return records_.files.size() > 1 || records_.files[file].rank || one_process_acts_;
  }

  bool find_actions() const {
    std::set<std::uint32_t> with_actions;
    for (const ChromeThread& thread : records_.threads) {
      if (is_pipeline_track(thread.name))
        return false;  // a trace converted by Pipewright, with a process for each rank
      if (thread.shows == Shows::Actions)
        with_actions.insert(thread.process);
    }
    return with_actions.size() == 1;
  }

  std::vector<std::uint32_t> in_order() const {
    const auto key = [&](std::uint32_t index) {
      const ChromeProcess& process = records_.processes[index];
      const int rank = records_.files[process.file].rank.value_or(std::numeric_limits<int>::max());
      return std::tuple(rank, process.file, process.sort_index, in_numbers(process.id));
    };
    std::vector<std::uint32_t> order(records_.processes.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    return order;
  }

  void add(std::uint32_t index) {
    const ChromeProcess& process = records_.processes[index];
    const bool whole_file = is_rank(process.file);
    if (units_.empty() || !whole_file || units_.back().file != process.file) {
      const auto rank = records_.files[process.file].rank;
      const std::string id = "process " + plain_id(process.id);
      std::string name = process.name.empty() ? id : process.name;
      if (whole_file)
        name = rank ? fmt::format("rank {}", *rank) : fmt::format("rank {}", units_.size());
      units_.push_back({process.file, std::move(name)});
    }
    of_[index] = static_cast<int>(units_.size()) - 1;
  }

  const ChromeRecords& records_;
  bool one_process_acts_;
  std::vector<Unit> units_;
  std::vector<int> of_;
};

// ---- rows

/// The spans of one thread; each of its levels becomes a track.
struct Lane {
  int rank = 0;
  plan::Row row = plan::Row::Compute;
  std::uint32_t thread = 0;
  std::string name;
};

constexpr std::string_view on_host = " on the host";

/// Returns the name of a pipeline track: "pipeline", "pipeline send on the host".
std::string pipeline_name(plan::Row row, bool is_second) {
  constexpr std::array words{"", " send", " receive", " reduce"};
  return std::string(pipeline_track) + words[static_cast<std::size_t>(row)] +
         std::string(is_second ? on_host : "");
}

/// Returns the row of the tracks with this name, in Pipewright's own traces and in those it
/// converted.
plan::Row row_called(const std::string& name) {
  for (const plan::Row row : {plan::Row::Send, plan::Row::Receive, plan::Row::Reduce})
    if (const std::string own = pipeline_name(row, false);
        name == own || name == own + std::string(on_host) ||
        name == own.substr(std::string_view(pipeline_track).size() + 1))
      return row;
  return plan::Row::Compute;
}

/// Selects the pipeline's stream on each device. A range has a counterpart on every stream that
/// works for it; the busiest stream of a rank is taken. All counterparts also stay among the events
/// of their streams.
class DeviceStreams {
 public:
  DeviceStreams(const ChromeRecords& records, const Units& units) {
    std::map<Stream, double> busy;
    for (std::size_t at = 0; at < records.spans.size(); ++at) {
      const ChromeSpan& span = records.spans[at];
      if (records.threads[span.thread].shows == Shows::DeviceActions)
        busy[stream_of(records.threads[span.thread], units)] += span.duration;
    }
    for (const auto& [stream, time] : busy) {
      const auto [best, is_first] = best_.try_emplace(std::get<0>(stream), stream);
      if (!is_first && time > busy[best->second])
        best->second = stream;
    }
  }

  bool has(int rank) const { return best_.contains(rank); }
  bool is_best(const ChromeThread& thread, const Units& units) const {
    const auto best = best_.find(units.rank_of(thread.process));
    return best != best_.end() && best->second == stream_of(thread, units);
  }

 private:
  using Stream = std::tuple<int, std::uint32_t, std::string>;  // rank, process, thread
  static Stream stream_of(const ChromeThread& thread, const Units& units) {
    return {units.rank_of(thread.process), thread.process, thread.id};
  }
  std::map<int, Stream> best_;
};

std::string name_of(const ChromeProcess& process) {
  if (!process.label.empty())
    return process.label;
  return process.name.empty() ? plain_id(process.id) : process.name;
}

/// The threads that have events, as lanes.
class Lanes {
 public:
  Lanes(const ChromeRecords& records, const Units& units, const std::vector<std::uint64_t>& counts)
      : records_(records), units_(units), counts_(counts), devices_(records, units) {
    for (std::uint32_t index = 0; index < records.threads.size(); ++index) {
      if (counts[index] == 0)
        continue;
      const ChromeThread& thread = records.threads[index];
      const int rank = units.rank_of(thread.process);
      processes_[rank].insert(thread.process);
      if (is_pipeline_track(thread.name))
        has_pipeline_.insert(rank);
    }
  }

  std::vector<Lane> in_order() const {
    std::vector<Lane> lanes;
    for (std::uint32_t index = 0; index < records_.threads.size(); ++index)
      if (is_shown(index))
        lanes.push_back(lane_of(index));
    const auto key = [&](const Lane& lane) {
      const ChromeThread& thread = records_.threads[lane.thread];
      const ChromeProcess& process = records_.processes[thread.process];
      return std::tuple(lane.rank, lane.row, place_of(thread.shows), process.sort_index,
                        in_numbers(process.id), thread.sort_index, in_numbers(thread.id));
    };
    std::sort(lanes.begin(), lanes.end(),
              [&](const Lane& a, const Lane& b) { return key(a) < key(b); });
    return lanes;
  }

 private:
  /// Orders the pipeline above all other content of a rank, with the device's part first.
  static int place_of(Shows shows) {
    switch (shows) {
      case Shows::DeviceActions:
        return 0;
      case Shows::Actions:
        return 1;
      case Shows::Steps:
        return 2;
      case Shows::DeviceSteps:
        return 3;
      case Shows::Calls:
        break;
    }
    return 4;
  }

  bool is_shown(std::uint32_t index) const {
    const ChromeThread& thread = records_.threads[index];
    if (counts_[index] == 0)
      return false;
    if (thread.shows != Shows::Actions && thread.shows != Shows::DeviceActions)
      return true;
    // A trace converted by Pipewright already has its pipeline tracks.
    return !has_pipeline_.contains(units_.rank_of(thread.process)) &&
           (thread.shows == Shows::Actions || devices_.is_best(thread, units_));
  }

  Lane lane_of(std::uint32_t index) const {
    const ChromeThread& thread = records_.threads[index];
    const int rank = units_.rank_of(thread.process);
    Lane lane{rank, thread.row, index, {}};
    switch (thread.shows) {
      case Shows::DeviceActions:
        lane.name = pipeline_name(thread.row, false);
        break;
      case Shows::Actions:
        lane.name = pipeline_name(thread.row, devices_.has(rank));
        break;
      case Shows::Steps:
        lane.name = plan::steps_track;
        break;
      case Shows::DeviceSteps:
        lane.name = device_steps_track;
        break;
      case Shows::Calls:
        lane.name = thread.name.empty() ? "thread " + plain_id(thread.id) : thread.name;
        lane.row = row_called(lane.name);
        if (processes_.at(rank).size() > 1)
          lane.name = fmt::format("{}, {}", name_of(records_.processes[thread.process]), lane.name);
    }
    return lane;
  }

  const ChromeRecords& records_;
  const Units& units_;
  const std::vector<std::uint64_t>& counts_;
  DeviceStreams devices_;
  std::map<int, std::set<std::uint32_t>> processes_;  // with events, by rank
  std::set<int> has_pipeline_;                        // ranks
};

// ---- columns

class TableMaker {
 public:
  explicit TableMaker(ChromeRecords& records)
      : records_(records), units_(records), columns_(std::make_shared<plan::EventColumns>()) {}

  plan::EventTable make() {
    plan::EventTable table{
        .name = {}, .ranks = static_cast<int>(units_.all().size()), .length = {}};
    count();
    find_times();
    sort_by_thread();
    const auto lanes = Lanes(records_, units_, counts_).in_order();
    std::uint64_t events = 0;
    for (const Lane& lane : lanes)
      events += counts_[lane.thread];
    columns_->reserve(events);
    for (const Lane& lane : lanes)
      add(lane, table);
    add_memory();

    for (std::uint32_t name = 0; name < records_.names.size(); ++name)
      table.names.push_back(records_.names.text(name));
    name_ranks(table);
    table.length = {length_};
    plan::set_columns(table, columns_);
    return table;
  }

 private:
  void count() {
    counts_.resize(records_.threads.size());
    for (std::size_t span = 0; span < records_.spans.size(); ++span)
      ++counts_[records_.spans[span].thread];
  }

  /// Aligns the files of a run by the nanoseconds at which their times begin.
  void find_times() {
    const bool shifted =
        std::all_of(records_.files.begin(), records_.files.end(),
                    [](const ChromeFile& file) { return file.base_time.has_value(); });
    for (const ChromeFile& file : records_.files)
      shifts_.push_back(
          shifted ? static_cast<double>(*file.base_time - *records_.files.front().base_time) / 1e3
                  : 0);
    first_ = std::numeric_limits<double>::infinity();
    for (std::size_t span = 0; span < records_.spans.size(); ++span)
      first_ = std::min(first_, start_of(records_.spans[span]));
    for (const ChromeSample& sample : records_.samples)
      first_ = std::min(first_, time_of(sample));
  }

  double shift_of(std::uint32_t process) const { return shifts_[records_.processes[process].file]; }
  double start_of(const ChromeSpan& span) const {
    return span.start + shift_of(records_.threads[span.thread].process);
  }
  double time_of(const ChromeSample& sample) const {
    return sample.time + shift_of(sample.process);
  }

  /// Sorts the indices of spans by thread.
  void sort_by_thread() {
    begins_.resize(counts_.size() + 1);
    std::partial_sum(counts_.begin(), counts_.end(), begins_.begin() + 1);
    std::vector<std::uint64_t> next(begins_.begin(), begins_.end() - 1);
    order_.resize(records_.spans.size());
    for (std::size_t span = 0; span < records_.spans.size(); ++span)
      order_[next[records_.spans[span].thread]++] = static_cast<std::uint32_t>(span);
  }

  void add(const Lane& lane, plan::EventTable& table) {
    const std::span<std::uint32_t> spans(order_.data() + begins_[lane.thread],
                                         counts_[lane.thread]);
    // Among events that begin at the same time, the longer one encloses the other, and one without
    // duration comes first.
    const auto key = [&](std::uint32_t index) {
      const ChromeSpan& span = records_.spans[index];
      return std::tuple(span.start, span.duration > 0, -span.duration);
    };
    const auto before = [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); };
    if (!std::is_sorted(spans.begin(), spans.end(), before))
      std::stable_sort(spans.begin(), spans.end(), before);

    const auto levels = levels_of(spans);
    std::vector<std::uint64_t> level_sizes(most_levels + 1);
    for (const std::uint16_t level : levels)
      ++level_sizes[level];
    if (level_sizes[most_levels] > 0)
      records_.problems.note(
          fmt::format("{} events of {} are not shown: {} others run at the same time",
                      level_sizes[most_levels], lane.name, most_levels));
    const double shift = shift_of(records_.threads[lane.thread].process) - first_;
    std::vector<Place> places;
    for (int level = 0; level_sizes[static_cast<std::size_t>(level)] > 0 &&
                        static_cast<std::size_t>(level) < most_levels;
         ++level) {
      const std::uint64_t begin = columns_->start.size();
      const std::uint64_t end = begin + level_sizes[static_cast<std::size_t>(level)];
      table.tracks.push_back({lane.rank, lane.row, lane.name, begin, end, level});
      places.push_back({begin, 0});
      columns_->start.resize(end);
      columns_->end.resize(end);
      columns_->name_of.resize(end);
    }
    for (std::size_t i = 0; i < spans.size(); ++i)
      if (levels[i] < places.size())
        put(records_.spans[spans[i]], shift, places[levels[i]]);
  }

  /// Assigns each event to the first level whose last event has ended, so that nested calls are one
  /// below the other.
  std::vector<std::uint16_t> levels_of(std::span<const std::uint32_t> spans) const {
    std::vector<std::uint16_t> levels;
    levels.reserve(spans.size());
    std::vector<double> ends;
    for (const std::uint32_t index : spans) {
      const ChromeSpan& span = records_.spans[index];
      const auto free = static_cast<std::size_t>(
          std::find_if(ends.begin(), ends.end(),
                       [&](double end) { return end <= span.start + rounding; }) -
          ends.begin());
      if (free == ends.size() && free < most_levels)
        ends.push_back(0);
      levels.push_back(static_cast<std::uint16_t>(free));
      if (free < most_levels)
        ends[free] = span.start + span.duration;
    }
    return levels;
  }

  struct Place {
    std::uint64_t next = 0;
    double free = 0;  // seconds
  };
  void put(const ChromeSpan& span, double shift, Place& place) {
    const double start = std::max((span.start + shift) * 1e-6, place.free);
    const double end = std::max((span.start + span.duration + shift) * 1e-6, start);
    columns_->start[place.next] = start;
    columns_->end[place.next] = end;
    columns_->name_of[place.next] = span.name;
    ++place.next;
    place.free = end;
    length_ = std::max(length_, end);
  }

  /// Adds one counter per rank: the samples of two would not form one curve.
  void add_memory() {
    std::map<int, std::uint32_t> counter;
    const auto worth = [&](std::uint32_t of) {
      const std::string& name = records_.counters.text(of);
      return name.starts_with("[memory] 0") ? 0 : name.starts_with("[memory]") ? 2 : 1;
    };
    for (const ChromeSample& sample : records_.samples) {
      const auto [best, is_first] =
          counter.try_emplace(units_.rank_of(sample.process), sample.counter);
      if (!is_first && worth(sample.counter) > worth(best->second))
        best->second = sample.counter;
    }
    std::vector<std::pair<int, plan::EventTable::Memory>> samples;
    for (const ChromeSample& sample : records_.samples) {
      const int rank = units_.rank_of(sample.process);
      if (counter[rank] == sample.counter)
        samples.push_back({rank, {(time_of(sample) - first_) * 1e-6, sample.bytes}});
    }
    std::stable_sort(samples.begin(), samples.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first, a.second.time) < std::pair(b.first, b.second.time);
    });
    for (const auto& [rank, sample] : samples) {
      while (std::cmp_less_equal(columns_->memory_begins.size(), rank))
        columns_->memory_begins.push_back(columns_->memory.size());
      columns_->memory.push_back(sample);
      length_ = std::max(length_, sample.time);
    }
    columns_->memory_begins.resize(units_.all().size() + 1, columns_->memory.size());
  }

  void name_ranks(plan::EventTable& table) const {
    bool needed = false;
    for (std::size_t rank = 0; rank < units_.all().size(); ++rank)
      needed = needed || units_.all()[rank].name != fmt::format("rank {}", rank);
    for (const Unit& unit : units_.all())
      if (needed)
        table.rank_names.push_back(unit.name);
  }

  ChromeRecords& records_;
  Units units_;
  std::shared_ptr<plan::EventColumns> columns_;
  std::vector<std::uint64_t> counts_, begins_;  // of spans, by thread
  std::vector<std::uint32_t> order_;
  std::vector<double> shifts_;  // µs, by file
  double first_ = 0;            // µs
  double length_ = 0;           // seconds
};

}  // namespace

bool is_pipeline_track(const std::string& name) {
  return name == pipeline_track || (name.starts_with(pipeline_track) && !name.ends_with(on_host) &&
                                    row_called(name) != plan::Row::Compute);
}

plan::EventTable table_of(ChromeRecords& records) { return TableMaker(records).make(); }

}  // namespace pipewright::trace
