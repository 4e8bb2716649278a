#include "explain/nsys_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

#include "explain/nvtx_names.hpp"
#include "pipewright/plan/error.hpp"
#include "sqlite/sqlite_file.hpp"

namespace pipewright::trace {
namespace {

constexpr int push_pop_range = 59, start_end_range = 60;  // NVTX_EVENTS.eventType
constexpr std::int64_t most_ns = 4'000'000'000'000'000'000;

/// globalTid and globalPid have the process number above 24 bits for the thread.
std::int64_t process_of_global(std::int64_t global) { return global >> 24; }
int process_number(std::int64_t process) { return static_cast<int>(process & 0xffffff); }

Microseconds microseconds(std::int64_t ns) {
  const std::int64_t rest = (ns % 1000 + 1000) % 1000;
  return {(ns - rest) / 1000, static_cast<double>(rest) / 1000};
}

/// Creates the arrows between a forward operator and the engine's work with the same sequence
/// number.
class SequenceArrows {
 public:
  void take_engine(std::uint32_t thread, std::string_view name, double start, double end) {
    engines_.push_back({thread, start, end, std::string(name), 0});
  }
  void take(std::uint32_t thread, std::string_view name, double start, double end,
            std::int64_t sequence) {
    sequenced_.push_back({thread, start, end, std::string(name), sequence});
  }

  void join(EventGatherer& gatherer) {
    const auto place = [](const Call& own) { return std::pair(own.thread, own.start); };
    std::stable_sort(engines_.begin(), engines_.end(),
                     [&](const Call& a, const Call& b) { return place(a) < place(b); });
    std::vector<const Call*> forwards, backwards;
    for (const Call& own : sequenced_)
      (is_backward(own) ? backwards : forwards).push_back(&own);
    const auto before = [](const Call* a, const Call* b) {
      return std::tuple(a->sequence, a->start) < std::tuple(b->sequence, b->start);
    };
    std::stable_sort(forwards.begin(), forwards.end(), before);
    std::int64_t id = 0;
    for (const Call* backward : backwards) {
      auto forward = std::upper_bound(forwards.begin(), forwards.end(), backward, before);
      if (forward == forwards.begin() || (*--forward)->sequence != backward->sequence)
        continue;
      gatherer.take_arrow_end(EventGatherer::Arrow::Forward, id, (*forward)->thread,
                              (*forward)->start);
      gatherer.take_arrow_end(EventGatherer::Arrow::Backward, id++, backward->thread,
                              backward->start);
    }
  }

 private:
  struct Call {
    std::uint32_t thread = 0;
    double start = 0, end = 0;
    std::string name;
    std::int64_t sequence = 0;
  };

  /// Returns true for a call such as "AddmmBackward0" within "autograd::engine::evaluate_function:
  /// AddmmBackward0".
  bool is_backward(const Call& own) const {
    auto engine =
        std::upper_bound(engines_.begin(), engines_.end(), own, [](const Call& a, const Call& b) {
          return std::pair(a.thread, a.start) < std::pair(b.thread, b.start);
        });
    if (engine == engines_.begin())
      return false;
    --engine;
    return engine->thread == own.thread && own.end <= engine->end &&
           engine->name.ends_with(": " + own.name);
  }

  std::vector<Call> engines_, sequenced_;
};

/// A process while it is being read.
struct NsysProcess {
  NsysProcess() : gatherer(events) {}
  PipelineEvents events;
  EventGatherer gatherer;
  SequenceArrows arrows;
  std::map<std::int64_t, std::uint32_t> threads{};
  std::set<std::int64_t> devices{};

  std::uint32_t thread(std::int64_t global) {
    return threads.try_emplace(global, static_cast<std::uint32_t>(threads.size())).first->second;
  }
};

class NsysReader {
 public:
  NsysReader(const std::filesystem::path& file, const std::function<void()>& ask)
      : name_(file.string()), file_(file), ask_(ask) {}

  std::vector<PipelineEvents> read() {
    if (!file_.has_table("NVTX_EVENTS"))
      refuse(
          "it has no table NVTX_EVENTS, so no ranges were recorded: record a profile "
          "with "
          "NVTX (nsys profile -t cuda,nvtx)");
    read("StringIds", {"id", "value"}, [&](const SqliteRow& row) {
      if (const auto id = row.number(0))
        strings_.emplace(*id, row.text(1).value_or(std::string_view()));
    });
    read_ranges();
    if (processes_.empty())
      refuse(
          "no range in it (NVTX_EVENTS) belongs to a pipeline or to an operator: record "
          "a profile with ranges called \"PP:2F0\", with Megatron-LM's (--nvtx-ranges) or with "
          "torch's operators (torch.autograd.profiler.emit_nvtx)");
    read_device();
    return ranks();
  }

 private:
  void read(const std::string& table, const std::vector<std::string>& columns,
            const SqliteFile::Take& take) const {
    std::size_t taken = 0;
    file_.read(table, columns, [&](const SqliteRow& row) {
      if (++taken % events_between_questions == 0)
        ask_();
      take(row);
    });
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw plan::InputError(fmt::format("{}: {}", name_, what));
  }

  std::optional<std::int64_t> time(const SqliteRow& row, int column, const char* field) const {
    const auto ns = row.number(column);
    if (ns && (*ns > most_ns || *ns < -most_ns))
      refuse(fmt::format("{} is {}: expected nanoseconds up to {}", field, *ns, most_ns));
    return ns;
  }

  void read_ranges() {
    read("NVTX_EVENTS", {"start", "end", "eventType", "text", "textId", "globalTid"},
         [&](const SqliteRow& row) { take_range(row); });
  }

  void take_range(const SqliteRow& row) {
    const auto type = row.number(2);
    const auto start = time(row, 0, "NVTX_EVENTS.start"), end = time(row, 1, "NVTX_EVENTS.end");
    if ((type != push_pop_range && type != start_end_range) || !start || !end || *end < *start)
      return;
    std::optional<std::string_view> text = row.text(3);
    if (const auto id = row.number(4); !text && id)
      if (const auto string = strings_.find(*id); string != strings_.end())
        text = string->second;
    if (!text)
      return;
    const NvtxName name = nvtx_name(*text);
    if (const auto meaning = nvtx_meaning(name))
      take(name, *meaning, row.number(5).value_or(0), *start, *end);
  }

  void take(const NvtxName& name, const NvtxMeaning& meaning, std::int64_t thread_id,
            std::int64_t start_ns, std::int64_t end_ns) {
    NsysProcess& process = processes_[process_of_global(thread_id)];
    EventGatherer& gatherer = process.gatherer;
    const std::uint32_t thread = process.thread(thread_id);
    const double start = gatherer.seconds(microseconds(start_ns));
    const double end = EventGatherer::end_of(start, microseconds(end_ns - start_ns));
    switch (meaning.kind) {
      case NvtxMeaning::Kind::Range:
        return gatherer.take_range(meaning.range, start, end);
      case NvtxMeaning::Kind::Transfer:
        return gatherer.take_transfer(thread, meaning.transfer, start, end);
      case NvtxMeaning::Kind::Interleaving:
        return gatherer.set_interleaves();
      case NvtxMeaning::Kind::Operator:
        break;
    }
    gatherer.take_operator(thread, name.bare, start, end);
    if (operator_kind(name.bare) == OperatorKind::Engine)
      process.arrows.take_engine(thread, name.bare, start, end);
    else if (name.sequence)
      process.arrows.take(thread, name.bare, start, end, *name.sequence);
  }

  // ---- device work

  struct Launch {
    std::int64_t process = 0, correlation = 0, start = 0;
  };
  struct Work {
    std::int64_t process = 0, correlation = 0, start = 0, end = 0;
  };

  /// All work of one launch has its correlation id, including what a graph replays: kernel by
  /// kernel, or as one row if nsys traces whole graphs (its default).
  void read_device() {
    std::vector<Work> works;
    for (const char* table : {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
                              "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"})
      if (file_.has_table(table))
        read_works(table, works);
    if (works.empty())
      return;
    std::vector<Launch> launches = read_launches();
    const auto by_id = [](const auto& a, const auto& b) {
      return std::pair(a.process, a.correlation) < std::pair(b.process, b.correlation);
    };
    std::stable_sort(works.begin(), works.end(), by_id);
    std::stable_sort(launches.begin(), launches.end(), by_id);
    auto launch = launches.begin();
    for (const Work& work : works) {
      while (launch != launches.end() && std::pair(launch->process, launch->correlation) <
                                             std::pair(work.process, work.correlation))
        ++launch;
      if (launch == launches.end())
        break;
      if (launch->process != work.process || launch->correlation != work.correlation)
        continue;
      EventGatherer& gatherer = processes_.at(work.process).gatherer;
      const double start = gatherer.seconds(microseconds(work.start));
      gatherer.take_launched(gatherer.seconds(microseconds(launch->start)), start,
                             EventGatherer::end_of(start, microseconds(work.end - work.start)));
    }
  }

  void read_works(const std::string& table, std::vector<Work>& works) {
    const bool has_names = table == "CUPTI_ACTIVITY_KIND_KERNEL";
    std::vector<std::string> columns{"start", "end", "correlationId", "globalPid", "deviceId"};
    if (has_names)
      columns.emplace_back("shortName");
    const std::string start_field = table + ".start", end_field = table + ".end";
    read(table, columns, [&](const SqliteRow& row) {
      const auto start = time(row, 0, start_field.c_str()), end = time(row, 1, end_field.c_str());
      const auto correlation = row.number(2), global = row.number(3);
      if (!start || !end || !correlation || !global || *end < *start || *end == 0)
        return;  // 0: could not be measured
      const auto process = processes_.find(process_of_global(*global));
      if (process == processes_.end())
        return;
      if (const auto device = row.number(4))
        process->second.devices.insert(*device);
      if (!has_names || is_work(row.number(5)))
        works.push_back({process->first, *correlation, *start, *end});
    });
  }

  bool is_work(std::optional<std::int64_t> name) const {
    const auto string = name ? strings_.find(*name) : strings_.end();
    return string == strings_.end() || !only_waits(string->second);
  }

  std::vector<Launch> read_launches() {
    std::vector<Launch> launches;
    read("CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "correlationId", "globalTid"},
         [&](const SqliteRow& row) {
           const auto start = time(row, 0, "CUPTI_ACTIVITY_KIND_RUNTIME.start");
           const auto correlation = row.number(1), global = row.number(2);
           if (start && correlation && global)
             launches.push_back({process_of_global(*global), *correlation, *start});
         });
    return launches;
  }

  // ---- ranks

  /// Returns the nanoseconds since 1970 at which times begin.
  std::optional<std::int64_t> session_start() const {
    const char* const table = "TARGET_INFO_SESSION_START_TIME";
    std::optional<std::int64_t> start;
    if (file_.has_table(table))
      read(table, {"utcEpochNs"}, [&](const SqliteRow& row) {
        start = time(row, 0, "TARGET_INFO_SESSION_START_TIME.utcEpochNs");
      });
    return start;
  }

  std::vector<PipelineEvents> ranks() {
    const auto start = session_start();
    std::vector<NsysProcess*> order;
    std::set<std::int64_t> devices;
    for (auto& [number, process] : processes_) {
      process.arrows.join(process.gatherer);
      process.gatherer.finish(start);
      process.events.file = processes_.size() == 1
                                ? name_
                                : fmt::format("{} (process {})", name_, process_number(number));
      order.push_back(&process);
      if (process.devices.size() == 1)
        devices.insert(*process.devices.begin());
    }
    if (devices.size() == order.size())
      std::sort(order.begin(), order.end(), [](const NsysProcess* a, const NsysProcess* b) {
        return *a->devices.begin() < *b->devices.begin();
      });
    std::vector<PipelineEvents> ranks;
    for (NsysProcess* process : order)
      ranks.push_back(std::move(process->events));
    return ranks;
  }

  std::string name_;
  SqliteFile file_;
  const std::function<void()>& ask_;
  std::unordered_map<std::int64_t, std::string> strings_;
  std::map<std::int64_t, NsysProcess> processes_;
};

}  // namespace

std::vector<PipelineEvents> read_nsys_ranks(const std::filesystem::path& file,
                                            const std::function<void()>& ask) {
  return NsysReader(file, ask).read();
}

}  // namespace pipewright::trace
