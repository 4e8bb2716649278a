#include "pipewright/loop/explain/pipeline_events.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <tuple>
#include <unordered_map>

#include "chrome/chrome_file.hpp"
#include "pipewright/plan/timeline/timeline_facts.hpp"

namespace pipewright::loop {
namespace {

struct NamedKind {
  RangeKind kind;
  std::string_view name;  // behind the mark
};

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Nothing for a range that does not speak of a pipeline.
std::optional<NamedKind> kind_of(std::string_view name) {
  const auto behind = [&](std::string_view mark) -> std::optional<std::string_view> {
    if (!name.starts_with(mark))
      return {};
    return name.substr(mark.size());
  };
  if (const auto action = behind("PP:"))
    return NamedKind{RangeKind::Action, *action};
  if (const auto microbatch = behind("Forward "); microbatch && is_number(*microbatch))
    return NamedKind{RangeKind::Forward, *microbatch};
  if (const auto microbatch = behind("Backward "); microbatch && is_number(*microbatch))
    return NamedKind{RangeKind::Backward, *microbatch};
  if (const auto step = name.substr(name.find_last_of("# ") + 1);
      plan::step_number(name) && is_number(step))
    return NamedKind{RangeKind::Step, step};
  if (const auto optimizer = behind("Optimizer.step#"))
    return NamedKind{RangeKind::Optimizer, *optimizer};
  if (behind("gloo:send"))
    return NamedKind{RangeKind::Send, {}};
  if (behind("gloo:recv"))
    return NamedKind{RangeKind::Receive, {}};
  return {};
}

/// The functions by which runtimes run one microbatch's forward or backward of a stage:
/// "torch/distributed/pipelining/stage.py(620): forward_one_chunk".
struct PipelineFunction {
  std::string_view file;
  std::string_view name;
  RangeKind kind;
};
constexpr std::array<PipelineFunction, 6> pipeline_functions{{
    {"pipelining/stage.py(", ": forward_one_chunk", RangeKind::ForwardCall},
    {"pipelining/stage.py(", ": backward_one_chunk", RangeKind::BackwardCall},
    {"pipeline_parallel/schedules.py(", ": forward_step", RangeKind::ForwardCall},
    {"pipeline_parallel/schedules.py(", ": backward_step", RangeKind::BackwardCall},
    {"runtime/pipe/engine.py(", ": _exec_forward_pass", RangeKind::ForwardCall},
    {"runtime/pipe/engine.py(", ": _exec_backward_pass", RangeKind::BackwardCall},
}};
constexpr std::string_view interleaving_function = ": forward_step_helper";

std::optional<RangeKind> kind_of_call(std::string_view name) {
  for (const PipelineFunction& own : pipeline_functions)
    if (name.ends_with(own.name) && name.find(own.file) != std::string_view::npos)
      return own.kind;
  return {};
}

OperatorKind operator_kind(std::string_view name) {
  if (name.starts_with("autograd::engine::evaluate_function"))
    return OperatorKind::Engine;
  if (!name.starts_with("c10d::"))
    return OperatorKind::Compute;
  if (name.starts_with("c10d::send"))
    return OperatorKind::Send;
  return name.starts_with("c10d::recv") ? OperatorKind::Receive : OperatorKind::Collective;
}

/// Gathers the events of one file.
class Gatherer {
 public:
  explicit Gatherer(PipelineEvents& events) : events_(events) {}

  void take(const ChromeEvent& event) {
    if (!event.start)
      return;
    if (event.phase == 'X')
      take_span(event);
    else if (event.phase == 's' || event.phase == 'f')
      take_arrow(event);
  }

  void finish(const ChromeFile& header) {
    events_.rank = header.rank;
    events_.world_size = header.world_size;
    constexpr std::int64_t most_us = 400'000'000'000'000;  // differences must be countable
    if (header.base_time && std::abs(first_.value_or(0)) < most_us)
      events_.origin_ns = *header.base_time + first_.value_or(0) * 1000;
    for (std::uint32_t name = 0; name < names_.size(); ++name)
      events_.names.push_back(names_.text(name));
    join_arrows();
    join_device();
    keep_outermost();
    std::stable_sort(events_.ranges.begin(), events_.ranges.end(),
                     [](const auto& a, const auto& b) {
                       return std::tuple(a.start, -a.end) < std::tuple(b.start, -b.end);
                     });
  }

 private:
  struct End {
    std::int64_t id = 0;
    double time = 0;
    std::uint32_t thread = 0;
  };
  struct Call {
    std::uint32_t thread = 0;
    OperatorKind kind = OperatorKind::Compute;
    double start = 0, end = 0;
    std::uint32_t name = 0;
  };

  double seconds(const Microseconds& time) {
    if (!first_)
      first_ = time.whole;
    return (static_cast<double>(time.whole - *first_) + time.fraction) * 1e-6;
  }

  std::uint32_t thread_of(const ChromeEvent& event) {
    if (event.thread == last_thread_text_ && event.process == last_process_text_)
      return last_thread_;
    last_thread_text_ = event.thread;
    last_process_text_ = event.process;
    return last_thread_ = threads_.number_of(last_process_text_ + " " + last_thread_text_);
  }

  void take_span(const ChromeEvent& event) {
    const double start = seconds(*event.start);
    const auto given = event.duration.value_or(Microseconds{});
    const double end = start + (static_cast<double>(given.whole) + given.fraction) * 1e-6;
    if (end < start)
      return;
    if (event.category == "cpu_op")
      calls_.push_back(
          {thread_of(event), operator_kind(event.name), start, end, names_.number_of(event.name)});
    else if (event.category == "kernel" || event.category == "gpu_memcpy" ||
             event.category == "gpu_memset")
      take_device_work(event, start, end);
    else if (event.category == "python_function")
      take_call(event.name, start, end);
    else if (const auto kind = kind_of(event.name))
      events_.ranges.push_back(
          {kind->kind, start, end, std::string(kind->name),
           event.category == "gpu_user_annotation" ? std::string(event.thread) : std::string()});
  }

  void take_call(std::string_view name, double start, double end) {
    if (const auto kind = kind_of_call(name))
      events_.ranges.push_back({*kind, start, end, {}, {}});
    else if (name.ends_with(interleaving_function))
      events_.interleaves = true;
  }

  /// What only waits for other ranks is no work.
  void take_device_work(const ChromeEvent& event, double start, double end) {
    if (!event.name.starts_with("nccl"))
      works_.push_back({thread_of(event), OperatorKind::Compute, start, end, 0});
  }

  void take_arrow(const ChromeEvent& event) {
    const bool is_autograd = event.category == "fwdbwd";
    if (!is_autograd && event.category != "ac2g")
      return;
    std::int64_t id = 0;
    std::string_view text = event.id;
    if (text.size() > 2 && text.front() == '"')
      text = text.substr(1, text.size() - 2);
    if (std::from_chars(text.data(), text.data() + text.size(), id).ec != std::errc())
      return;
    auto& ends = is_autograd ? (event.phase == 's' ? forward_ : backward_)
                             : (event.phase == 's' ? launches_ : starts_);
    ends.push_back({id, seconds(*event.start), thread_of(event)});
  }

  static void sort_by_id(std::vector<End>& ends) {
    std::stable_sort(ends.begin(), ends.end(),
                     [](const End& a, const End& b) { return a.id < b.id; });
  }

  /// Calls `take(begin, end)` for the two ends of each arrow.
  template <class Take>
  static void join(std::vector<End>& begins, std::vector<End>& ends, const Take& take) {
    sort_by_id(begins);
    sort_by_id(ends);
    auto begin = begins.begin();
    for (const End& end : ends) {
      while (begin != begins.end() && begin->id < end.id)
        ++begin;
      if (begin != begins.end() && begin->id == end.id)
        take(*begin, end);
    }
  }

  void join_arrows() {
    join(forward_, backward_, [&](const End& from, const End& to) {
      events_.arrows.push_back({from.time, to.time});
      ++threads_of_arrows_[from.thread];
    });
    std::sort(events_.arrows.begin(), events_.arrows.end(),
              [](const auto& a, const auto& b) { return a.from < b.from; });
  }

  void join_device() {
    const auto place = [](const Call& work) { return std::pair(work.thread, work.start); };
    std::sort(works_.begin(), works_.end(),
              [&](const Call& a, const Call& b) { return place(a) < place(b); });
    join(launches_, starts_, [&](const End& launch, const End& start) {
      const std::pair wanted(start.thread, start.time);
      const auto work =
          std::lower_bound(works_.begin(), works_.end(), wanted,
                           [&](const Call& own, const auto& key) { return place(own) < key; });
      if (work != works_.end() && place(*work) == wanted)
        events_.device.push_back({launch.time, start.time, work->end});
    });
    std::sort(events_.device.begin(), events_.device.end(),
              [](const auto& a, const auto& b) { return a.launched < b.launched; });
  }

  static constexpr double rounding = 5e-10;  // seconds: times are written in whole nanoseconds

  /// Keeps operators of the threads that run forwards or backwards: others load data, or wait.
  void keep_outermost() {
    std::vector<bool> works(threads_.size());
    for (const auto& [thread, count] : threads_of_arrows_)
      works[thread] = true;
    for (const Call& call : calls_)
      if (call.kind != OperatorKind::Compute && call.kind != OperatorKind::Collective)
        works[call.thread] = true;
    std::sort(calls_.begin(), calls_.end(), [](const Call& a, const Call& b) {
      return std::tuple(a.thread, a.start, -a.end) < std::tuple(b.thread, b.start, -b.end);
    });
    const Call* around = nullptr;
    for (const Call& call : calls_) {
      if (!works[call.thread])
        continue;
      if (around != nullptr && around->thread == call.thread && call.start + rounding < around->end)
        continue;
      around = &call;
      events_.operators.push_back({call.start, call.end, call.kind, call.name});
    }
    std::stable_sort(events_.operators.begin(), events_.operators.end(),
                     [](const auto& a, const auto& b) { return a.start < b.start; });
  }

  PipelineEvents& events_;
  std::optional<std::int64_t> first_;  // µs
  Numbering names_, threads_;
  std::string last_thread_text_ = "?", last_process_text_ = "?";
  std::uint32_t last_thread_ = 0;
  std::vector<Call> calls_, works_;
  std::vector<End> forward_, backward_, launches_, starts_;
  std::map<std::uint32_t, std::size_t> threads_of_arrows_;
};

}  // namespace

PipelineEvents read_pipeline_events(const std::filesystem::path& file,
                                    std::vector<std::string>& problems,
                                    const std::function<void()>& ask) {
  PipelineEvents events{.file = file.string()};
  ProblemList list(problems);
  list.begin_file(events.file);
  ChromeFile header{.name = events.file};
  ChromeEventParser parser;
  Gatherer gatherer(events);
  const std::size_t before = problems.size();
  std::size_t taken = 0;
  read_chrome_file(file, header, list, parser, [&](const ChromeEvent& event) {
    if (++taken % 4096 == 0)
      ask();
    gatherer.take(event);
  });
  list.end_file();
  events.cut_off = problems.size() > before;
  gatherer.finish(header);
  return events;
}

}  // namespace pipewright::loop
