#include "chrome/chrome_records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "pipewright/plan/program/instruction.hpp"
#include "pipewright/plan/timeline/timeline_facts.hpp"

namespace pipewright::trace {
namespace {

constexpr std::uint64_t most_named = 5;          // problems per file that are listed in full
constexpr std::string_view action_mark = "PP:";  // of torch.distributed.pipelining
constexpr std::string_view device_range = "gpu_user_annotation";
constexpr std::uint64_t most_spans = std::numeric_limits<std::uint32_t>::max();

bool speaks_of_memory(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text.find("mem") != std::string::npos || text.find("bytes") != std::string::npos ||
         text.find("alloc") != std::string::npos;
}

/// Accepts all phases of the format; those that are not read here contain nothing that is shown.
bool is_phase(char phase) {
  return std::string_view("BEXIiCbnePNODSTpFstfMVvaRc(),").find(phase) != std::string_view::npos;
}

}  // namespace

std::uint32_t Numbering::number_of(std::string_view text) {
  if (const auto known = numbers_.find(text); known != numbers_.end())
    return known->second;
  const auto added = numbers_.emplace(text, size()).first;
  texts_.push_back(&added->first);
  return added->second;
}

void ProblemList::begin_file(std::string file) {
  file_ = std::move(file);
  skipped_ = 0;
}

void ProblemList::skipped(std::uint64_t offset, std::string_view why) {
  if (++skipped_ <= most_named)
    problems_.push_back(fmt::format("{}: byte {}: event skipped: {}", file_, offset, why));
}

void ProblemList::note(std::string_view what) {
  problems_.push_back(fmt::format("{}: {}", file_, what));
}

void ProblemList::end_file() {
  if (skipped_ > most_named)
    note(fmt::format("and {} more events skipped", skipped_ - most_named));
}

void ChromeRecords::begin_file(const std::string& name) {
  file_ = static_cast<std::uint32_t>(files.size());
  files.push_back({.name = name});
  recent_ = {};
  problems.begin_file(name);
  last_ = 0;
  looks_for_steps_ = true;
  spans_without_step_ = 0;
  has_step_ranges_ = false;
}

/// Events that began and never ended are extended to the last time of the file.
void ChromeRecords::end_file() {
  add_steps_by_arguments();
  std::uint64_t unended = 0;
  for (std::uint32_t thread = 0; thread < threads.size(); ++thread) {
    for (const ChromeThread::Open& open : threads[thread].open)
      if (spans.size() < most_spans)
        spans.push_back({open.start, std::max(0.0, last_ - open.start), open.name, thread});
    unended += std::exchange(threads[thread].open, {}).size();
  }
  if (unended > 0)
    problems.note(fmt::format("{} event{} and do{} not end: shown up to the end", unended,
                              unended == 1 ? " begins" : "s begin", unended == 1 ? "es" : ""));
  problems.end_file();
}

void ChromeRecords::take(const ChromeEvent& event) {
  switch (event.phase) {
    case 'X':
      return take_span(event);
    case 'B':
      return take_begin(event);
    case 'E':
      return take_end(event);
    case 'C':
      return take_counter(event);
    case 'i':
    case 'I':
      return take_memory(event);
    case 'M':
      return take_metadata(event);
    case '\0':
      return problems.skipped(event.offset, R"(it has no phase ("ph"))");
    default:
      if (!is_phase(event.phase))
        problems.skipped(event.offset, R"(its phase ("ph") is unknown)");
  }
}

void ChromeRecords::take_span(const ChromeEvent& event) {
  const auto start = start_of(event);
  if (!start)
    return;
  const auto given = event.duration.value_or(Microseconds{});
  const double duration = static_cast<double>(given.whole) + given.fraction;
  if (duration < 0)
    return problems.skipped(event.offset, "it ends before it starts");
  add_span(event, {*start, duration, names.number_of(event.name), thread_of(event)});
}

void ChromeRecords::take_begin(const ChromeEvent& event) {
  if (const auto start = start_of(event))
    threads[thread_of(event)].open.push_back({*start, names.number_of(event.name)});
}

void ChromeRecords::take_end(const ChromeEvent& event) {
  const auto end = start_of(event);
  if (!end)
    return;
  const std::uint32_t thread = thread_of(event);
  auto& open = threads[thread].open;
  if (open.empty())
    return problems.skipped(event.offset, "it ends an event that has not begun");
  const ChromeThread::Open begun = open.back();
  open.pop_back();
  if (*end < begun.start)
    return problems.skipped(event.offset, "it ends before it starts");
  add_span(event, {begun.start, *end - begun.start, begun.name, thread});
}

/// Adds a sample if the counter counts memory.
void ChromeRecords::take_counter(const ChromeEvent& event) {
  const FlatObject values = flat_object(event.arguments);
  const bool by_name = speaks_of_memory(std::string(event.name));
  for (const auto& [key, bytes] : values.numbers)
    if (by_name || speaks_of_memory(key))
      return add_sample(event, std::string(event.name), bytes);
}

/// Adds a memory sample of torch's profiler, which is an instant event.
void ChromeRecords::take_memory(const ChromeEvent& event) {
  if (event.name != "[memory]")
    return;
  const FlatObject values = flat_object(event.arguments);
  if (const auto bytes = values.number("Total Allocated"))
    add_sample(event,
               fmt::format("[memory] {}.{}", values.number("Device Type").value_or(0),
                           values.number("Device Id").value_or(0)),
               *bytes);
}

void ChromeRecords::add_sample(const ChromeEvent& event, const std::string& counter, double bytes) {
  const auto time = start_of(event);
  if (!time)
    return;
  if (!(bytes >= 0 && bytes < 9e18))
    return problems.skipped(event.offset, "it has no valid number of bytes");
  samples.push_back(
      {*time, static_cast<std::int64_t>(bytes), process_of(event), counters.number_of(counter)});
}

void ChromeRecords::take_metadata(const ChromeEvent& event) {
  const FlatObject values = flat_object(event.arguments);
  if (event.name == "process_name")
    processes[process_of(event)].name = values.text("name").value_or("");
  else if (event.name == "process_labels")
    processes[process_of(event)].label = values.text("labels").value_or("");
  else if (event.name == "process_sort_index")
    processes[process_of(event)].sort_index = values.number("sort_index").value_or(0);
  else if (event.name == "thread_name")
    threads[thread_of(event)].name = values.text("name").value_or("");
  else if (event.name == "thread_sort_index")
    threads[thread_of(event)].sort_index = values.number("sort_index").value_or(0);
}

void ChromeRecords::add_span(const ChromeEvent& event, const ChromeSpan& span) {
  if (spans.size() >= most_spans - 1)
    return problems.skipped(event.offset, "there are too many");
  last_ = std::max(last_, span.start + span.duration);
  if (looks_for_steps_)
    add_to_step(event, span);
  const Named::Kind kind = meaning_of(span.name).kind;
  if (kind == Named::Kind::Step) {
    // A mark is not work: as a span of the thread it would make the thread look busy all the time.
    const bool on_device =
        event.category == device_range || threads[span.thread].name == device_steps_track;
    has_step_ranges_ = true;
    ChromeSpan step = span;
    step.thread = own_thread(threads[span.thread].process, "",
                             on_device ? Shows::DeviceSteps : Shows::Steps, plan::Row::Compute);
    spans.push_back(step);
    return;
  }
  spans.push_back(span);
  if (kind == Named::Kind::Action)
    add_action(event, span);
}

/// Adds the span a second time, among the actions of the pipeline.
void ChromeRecords::add_action(const ChromeEvent& event, ChromeSpan span) {
  const Named& action = meaning_of(span.name);
  const bool on_device = event.category == device_range;
  const ChromeThread& thread = threads[span.thread];
  span.name = action.action;
  span.thread = own_thread(thread.process, on_device ? thread.id : "",
                           on_device ? Shows::DeviceActions : Shows::Actions, action.row);
  spans.push_back(span);
}

/// Returns the thread for this kind of content of a process, or of one of its device's streams.
std::uint32_t ChromeRecords::own_thread(std::uint32_t process, const std::string& of_device,
                                        Shows shows, plan::Row row) {
  const std::uint32_t thread = thread_ids_.number_of(fmt::format(
      "shows {} {} {} {}", process, static_cast<int>(shows), static_cast<int>(row), of_device));
  if (thread == threads.size())
    threads.push_back({.process = process, .id = of_device, .shows = shows, .row = row});
  return thread;
}

/// Traces that mark steps in arguments ("step": 7) do so early. If the first spans of a file have
/// none, the arguments of the others are not read.
void ChromeRecords::add_to_step(const ChromeEvent& event, const ChromeSpan& span) {
  constexpr int most_without = 1000;
  const auto number = event.arguments.find("\"step\"") != std::string_view::npos
                          ? flat_object(event.arguments).number("step")
                          : std::nullopt;
  if (!number || !(*number >= 0 && *number < 1e15) || std::floor(*number) != *number) {
    looks_for_steps_ = !steps_.empty() || ++spans_without_step_ < most_without;
    return;
  }
  const double end = span.start + span.duration;
  Interval& step = steps_
                       .try_emplace({threads[span.thread].process, std::llround(*number)},
                                    Interval{span.start, end})
                       .first->second;
  step = {std::min(step.start, span.start), std::max(step.end, end)};
}

/// Adds these steps unless ranges mark whole steps, which are more exact.
void ChromeRecords::add_steps_by_arguments() {
  if (!has_step_ranges_ && steps_.size() < most_spans - spans.size())
    for (const auto& [key, step] : steps_)
      spans.push_back({step.start, step.end - step.start,
                       names.number_of(fmt::format("step {}", key.second)),
                       own_thread(key.first, "", Shows::Steps, plan::Row::Compute)});
  steps_.clear();
}

/// Converts the text of a known action to Pipewright's form: "PP:2F0" becomes "2F0".
const ChromeRecords::Named& ChromeRecords::meaning_of(std::uint32_t range) {
  if (range >= meanings_.size())
    meanings_.resize(names.size());
  if (const auto& known = meanings_[range])
    return *known;
  Named meaning;
  if (const std::string& text = names.text(range); text.starts_with(action_mark)) {
    const std::string name = text.substr(action_mark.size());
    const auto instruction = plan::parse_instruction(name);
    meaning = {Named::Kind::Action, names.number_of(instruction ? to_string(*instruction) : name),
               instruction ? plan::row_of(instruction->kind) : plan::Row::Compute};
  } else if (plan::step_number(text)) {
    meaning.kind = Named::Kind::Step;
  }
  return meanings_[range].emplace(meaning);
}

std::uint32_t ChromeRecords::process_of(const ChromeEvent& event) {
  id_.assign(reinterpret_cast<const char*>(&file_), sizeof file_).append(event.process);
  const std::uint32_t process = process_ids_.number_of(id_);
  if (process == processes.size())
    processes.push_back({.file = file_, .id = std::string(event.process)});
  return process;
}

std::uint32_t ChromeRecords::thread_of(const ChromeEvent& event) {
  // Most events belong to the same thread as a recent event.
  for (const Recent& recent : recent_)
    if (recent.process == event.process && recent.thread == event.thread)
      return recent.number;
  const std::uint32_t process = process_of(event);
  id_.assign(reinterpret_cast<const char*>(&process), sizeof process).append(event.thread);
  const std::uint32_t thread = thread_ids_.number_of("thread" + id_);
  if (thread == threads.size())
    threads.push_back({.process = process, .id = std::string(event.thread)});
  recent_[oldest_++ % recent_.size()] = {std::string(event.process), std::string(event.thread),
                                         thread};
  return thread;
}

/// Returns the time since the first event that was read: a double cannot represent both years and
/// nanoseconds.
std::optional<double> ChromeRecords::start_of(const ChromeEvent& event) {
  if (!event.start) {
    problems.skipped(event.offset, R"(it has no time ("ts"))");
    return {};
  }
  if (!first_)
    first_ = event.start->whole;
  return static_cast<double>(event.start->whole - *first_) + event.start->fraction;
}

}  // namespace pipewright::trace
