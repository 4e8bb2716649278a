#include "pipewright/trace/straggler/job_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "chrome/chrome_file.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::trace {
namespace {

constexpr int rows_of_worker = 5;      // compute, pp-comm, tp-comm, dp-comm, misc
constexpr int most_to_look_at = 4096;  // events read before the file type is decided
constexpr int most_number = 100'000'000;
constexpr double most_correction_s = 1e-3;  // of a clock, by which durations become negative

/// Parses a whole number; accepts no other notation.
std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || behind != end || number > most_number || number < -1)
    return {};
  return number;
}

/// Returns "3" of "PP rank 3, TP rank 0, compute"; nothing for the name of another kind of thread.
std::optional<std::string_view> stage_words_in(std::string_view thread_name) {
  constexpr std::string_view mark = "PP rank ";
  const auto comma = thread_name.find(", TP rank ");
  if (!thread_name.starts_with(mark) || comma == std::string_view::npos)
    return {};
  return thread_name.substr(mark.size(), comma - mark.size());
}

/// The relevant fields of an event's `args`.
struct StepArguments {
  std::optional<int> step{};
  int chunk = -1;
};

std::optional<int> whole_in(const FlatObject& arguments, std::string_view key) {
  const auto number = arguments.number(key);
  if (!number || !(*number >= -1 && *number <= most_number) || *number != static_cast<int>(*number))
    return {};
  return static_cast<int>(*number);
}

StepArguments step_arguments(std::string_view json) {
  const FlatObject arguments = flat_object(json);
  StepArguments own{.step = whole_in(arguments, "step"),
                    .chunk = whole_in(arguments, "model_chunk").value_or(-1)};
  if (own.step && *own.step < 0)
    own.step = {};
  return own;
}

bool names_stage(const ChromeEvent& event) {
  return event.phase == 'M' && event.name == "thread_name" &&
         stage_words_in(flat_object(event.arguments).text("name").value_or(""));
}

double seconds_of(const Microseconds& time) {
  return (static_cast<double>(time.whole) + time.fraction) * 1e-6;
}

class JobReader {
 public:
  explicit JobReader(JobTrace& trace) : trace_(trace) {}

  void take(const ChromeEvent& event) {
    if (event.phase == 'M' && event.name == "thread_name")
      take_thread(event);
    else if (event.phase == 'X')
      take_span(event);
  }

  void finish() {
    number_steps();
    find_layout();
    number_workers();
    require_all_workers();
    std::stable_sort(trace_.events.begin(), trace_.events.end(),
                     [](const JobEvent& a, const JobEvent& b) {
                       return std::tuple(a.step, a.worker, a.operation, a.begin) <
                              std::tuple(b.step, b.worker, b.operation, b.begin);
                     });
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw plan::InputError(fmt::format("{}: {}", trace_.file, what));
  }

  int thread_of(const ChromeEvent& event) const {
    const auto thread = number_in(event.thread);
    if (!thread || *thread < 0)
      refuse(
          fmt::format("byte {}: thread (tid) {}: expected 5 times the worker's rank plus its row",
                      event.offset, event.thread));
    return *thread;
  }

  void take_thread(const ChromeEvent& event) {
    const std::string name = flat_object(event.arguments).text("name").value_or("");
    const auto words = stage_words_in(name);
    if (!words)
      return;
    const auto stage = number_in(*words);
    if (!stage || *stage < 0)
      refuse(fmt::format("byte {}: thread_name \"{}\": the rank in the pipeline (PP) counts from 0",
                         event.offset, name));
    const int thread = thread_of(event);
    if (const int known = stages_.try_emplace(thread, *stage).first->second; known != *stage)
      refuse(fmt::format("byte {}: thread (tid) {} is of stage {}, and of stage {} before",
                         event.offset, thread, *stage, known));
  }

  void take_span(const ChromeEvent& event) {
    const auto operation = find_job_operation(event.name);
    const StepArguments& arguments = arguments_of(event.arguments);
    if (!operation || !arguments.step || !event.start) {
      ++trace_.left_out;
      return;
    }
    const auto replica = number_in(event.process);
    if (!replica || *replica < 0)
      refuse(fmt::format("byte {}: process (pid) {}: expected the data-parallel rank", event.offset,
                         event.process));
    const double seconds = seconds_of(event.duration.value_or(Microseconds{}));
    if (seconds < -most_correction_s)
      refuse(
          fmt::format("byte {}: {} takes {:g} s: the correction of a clock makes durations "
                      "negative by {:g} s at most",
                      event.offset, event.name, seconds, most_correction_s));
    if (seconds < 0) {
      ++trace_.negative;
      trace_.least_s = std::min(trace_.least_s, seconds);
    }
    replicas_.push_back(*replica);
    threads_.push_back(thread_of(event));
    trace_.events.push_back(
        {*operation, 0, *arguments.step, arguments.chunk, seconds_of(*event.start), seconds});
  }

  /// Caches the result, because most texts occur often.
  const StepArguments& arguments_of(std::string_view json) {
    const auto known = arguments_.find(json);
    if (known != arguments_.end())
      return known->second;
    return arguments_.emplace(std::string(json), step_arguments(json)).first->second;
  }

  void number_steps() {
    for (const JobEvent& event : trace_.events)
      trace_.steps.push_back(event.step);
    std::sort(trace_.steps.begin(), trace_.steps.end());
    trace_.steps.erase(std::unique(trace_.steps.begin(), trace_.steps.end()), trace_.steps.end());
    if (trace_.steps.empty())
      refuse("no operation of a training in it");
    for (JobEvent& event : trace_.events)
      event.step =
          static_cast<int>(std::lower_bound(trace_.steps.begin(), trace_.steps.end(), event.step) -
                           trace_.steps.begin());
  }

  int stage_of_thread(int thread) const {
    const auto found = stages_.find(thread);
    if (found == stages_.end())
      refuse(
          fmt::format("thread (tid) {} has no thread_name \"PP rank S, TP rank T, …\", which "
                      "alone says its stage",
                      thread));
    return found->second;
  }

  void find_layout() {
    JobLayout& layout = trace_.layout;
    int least = std::numeric_limits<int>::max(), chunk = 0;
    for (std::size_t at = 0; at < threads_.size(); ++at) {
      layout.replicas = std::max(layout.replicas, replicas_[at] + 1);
      layout.stages = std::max(layout.stages, stage_of_thread(threads_[at]) + 1);
      if (const int rank = threads_[at] / rows_of_worker; rank > 0)
        least = std::min(least, rank);
      if (trace_.events[at].operation == JobOperation::Forward)
        chunk = std::max(chunk, trace_.events[at].chunk);
    }
    layout.chunks = chunk + 1;
    require_enough_events();
    // Rank of the second worker; with one worker the number of ranks is unknown.
    if (layout.workers() > 1 && least != std::numeric_limits<int>::max())
      layout.ranks_per_worker = least;
    if (std::int64_t{layout.ranks_per_worker} * layout.workers() > most_number)
      refuse(fmt::format("{} workers of {} ranks are more than can be counted", layout.workers(),
                         layout.ranks_per_worker));
  }

  /// Each worker has an event in each step, and one for each of its chunks.
  void require_enough_events() const {
    const JobLayout& layout = trace_.layout;
    const auto most = static_cast<std::int64_t>(trace_.events.size());
    const std::int64_t workers = std::int64_t{layout.replicas} * layout.stages;
    if (workers > most || workers * static_cast<std::int64_t>(trace_.steps.size()) > most ||
        workers * layout.chunks > most)
      refuse(
          fmt::format("{} steps of {} replicas of {} stages of {} chunks are more than events: {}",
                      trace_.steps.size(), layout.replicas, layout.stages, layout.chunks, most));
  }

  void number_workers() {
    std::vector<int> rank(static_cast<std::size_t>(trace_.layout.workers()), -1);
    for (std::size_t at = 0; at < threads_.size(); ++at) {
      const int stage = stage_of_thread(threads_[at]);
      const int worker = trace_.layout.worker(replicas_[at], stage);
      const int own = threads_[at] / rows_of_worker;
      int& known = rank[static_cast<std::size_t>(worker)];
      if (known >= 0 && known != own)
        refuse(
            fmt::format("data-parallel rank {} on stage {} has events of ranks {} and {} (tid "
                        "over {}): only one of the ranks that partition a stage may have events",
                        replicas_[at], stage, known, own, rows_of_worker));
      known = own;
      trace_.events[at].worker = worker;
    }
  }

  void require_all_workers() const {
    std::vector<bool> is_there(static_cast<std::size_t>(trace_.layout.workers()));
    for (const JobEvent& event : trace_.events)
      is_there[static_cast<std::size_t>(event.worker)] = true;
    const auto absent = std::find(is_there.begin(), is_there.end(), false);
    if (absent == is_there.end())
      return;
    const auto worker = static_cast<int>(absent - is_there.begin());
    refuse(fmt::format("no event of data-parallel rank {} on stage {}, of {} replicas of {} stages",
                       trace_.layout.replica_of(worker), trace_.layout.stage_of(worker),
                       trace_.layout.replicas, trace_.layout.stages));
  }

  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  JobTrace& trace_;
  std::map<int, int> stages_;            // by thread
  std::vector<int> replicas_, threads_;  // by event
  std::unordered_map<std::string, StepArguments, TextHash, std::equal_to<>> arguments_;
};

struct TracedNote {
  bool is_job = false;
};

}  // namespace

bool is_job_trace(const std::filesystem::path& file) {
  std::vector<std::string> ignored;
  ProblemList problems(ignored);
  ChromeFile header{.name = file.string()};
  ChromeEventParser parser;
  parser.set_wants_span_arguments(true);
  int seen = 0;
  try {
    read_chrome_file(file, header, problems, parser, [&](const ChromeEvent& event) {
      if (names_stage(event) || (event.phase == 'X' && find_job_operation(event.name) &&
                                 step_arguments(event.arguments).step))
        throw TracedNote{true};
      if (++seen == most_to_look_at)
        throw TracedNote{false};
    });
  } catch (const TracedNote& told) {
    return told.is_job;
  } catch (const plan::InputError&) {
    return false;
  }
  return false;
}

JobTrace read_job_trace(const std::filesystem::path& file, std::vector<std::string>& problems) {
  JobTrace trace{.file = file.string(), .layout = {}, .steps = {}, .events = {}};
  ProblemList list(problems);
  list.begin_file(trace.file);
  ChromeFile header{.name = trace.file};
  ChromeEventParser parser;
  parser.set_wants_span_arguments(true);
  JobReader reader(trace);
  read_chrome_file(file, header, list, parser,
                   [&](const ChromeEvent& event) { reader.take(event); });
  list.end_file();
  reader.finish();
  return trace;
}

JobTrace with_steps(JobTrace trace, const std::vector<int>& numbers) {
  std::vector<int> place(trace.steps.size(), -1);
  std::vector<int> kept;
  for (const int number : std::set<int>(numbers.begin(), numbers.end())) {
    const auto found = std::lower_bound(trace.steps.begin(), trace.steps.end(), number);
    if (found == trace.steps.end() || *found != number)
      throw plan::InputError(fmt::format("{}: step {} is not in it, of {} steps from {} to {}",
                                         trace.file, number, trace.steps.size(),
                                         trace.steps.front(), trace.steps.back()));
    place[static_cast<std::size_t>(found - trace.steps.begin())] = static_cast<int>(kept.size());
    kept.push_back(number);
  }
  std::erase_if(trace.events, [&](JobEvent& event) {
    event.step = place[static_cast<std::size_t>(event.step)];
    return event.step < 0;
  });
  trace.steps = std::move(kept);
  return trace;
}

}  // namespace pipewright::trace
