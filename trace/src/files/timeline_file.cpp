#include "pipewright/trace/files/timeline_file.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "chrome/text_window.hpp"
#include "pipewright/draw/svg.hpp"
#include "pipewright/draw/timeline.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/event_file.hpp"
#include "pipewright/plan/timeline/timeline_facts.hpp"
#include "pipewright/plan/timeline/trace.hpp"
#include "pipewright/trace/chrome/chrome_trace.hpp"
#include "pipewright/trace/files/straggler_files.hpp"
#include "text_file.hpp"

namespace pipewright::trace {
namespace {

constexpr std::size_t most_to_draw = 20'000;  // events

/// Returns the first characters of a file, decompressed; empty if it cannot be read.
std::string beginning_of(const std::filesystem::path& file) {
  TextWindow window(file);
  while (window.size() < std::size_t{1} << 16U && window.more())
    continue;
  return {window.data(), window.size()};
}

/// Returns "timeline" for a text with "pipewright/timeline/1", with which Pipewright's files begin,
/// or an empty text.
std::string format_in(std::string_view beginning) {
  constexpr std::string_view mark = "\"pipewright/";
  const auto at = beginning.find(mark);
  if (at == std::string_view::npos)
    return "";
  beginning.remove_prefix(at + mark.size());
  return std::string(beginning.substr(0, beginning.find_first_of("/\"")));
}

std::string whole_text(const std::filesystem::path& file) {
  TextWindow window(file);
  std::string text;
  while (window.more()) {
    text.append(window.data(), window.size());
    window.drop(window.size());
  }
  if (!window.failure().empty())
    throw plan::MalformedFile(
        fmt::format("{}: byte {}: {}", file.string(), text.size(), window.failure()));
  return text;
}

plan::Timeline read_own_trace(const std::filesystem::path& file) {
  return plan::timeline_from_trace(plan::JsonDocument::parse(whole_text(file), file.string()));
}

/// Reads a damaged trace of Pipewright as a foreign one.
plan::EventTable read_damaged_trace(const std::filesystem::path& file,
                                    const plan::InputError& error,
                                    std::vector<std::string>& problems) {
  std::vector<std::string> more;
  plan::EventTable table;
  try {
    table = read_chrome_trace(file, more);
  } catch (const plan::InputError&) {
    throw error;
  }
  problems.emplace_back(error.what());
  problems.insert(problems.end(), more.begin(), more.end());
  return table;
}

/// Returns the timeline of a whole job, by worker; nothing if the trace is not whole, which is then
/// read as any other trace.
std::optional<plan::EventTable> job_timeline_in(const std::filesystem::path& file,
                                                std::vector<std::string>& problems) {
  std::vector<std::string> more;
  try {
    auto table = read_job_timeline(file, more);
    problems.insert(problems.end(), more.begin(), more.end());
    return table;
  } catch (const plan::InputError&) {
    return {};
  }
}

enum class Damage { Refuse, Note };

plan::EventTable read_any(const std::filesystem::path& file, Damage damage,
                          std::vector<std::string>& problems) {
  const std::string beginning = beginning_of(file);
  if (plan::is_event_file(beginning))
    return plan::read_event_file(file);
  const std::string format = format_in(beginning);
  if (format == "timeline") {
    try {
      return plan::table_of(read_own_trace(file));
    } catch (const plan::InputError& error) {
      if (damage == Damage::Refuse)
        throw;
      return read_damaged_trace(file, error, problems);
    }
  }
  const std::string wanted =
      "a timeline is needed: one of Pipewright (.pwt, or .json as --trace writes "
      "it) or a Chrome trace (.json, .json.gz)";
  if (!format.empty() && beginning.find("\"traceEvents\"") == std::string::npos)
    throw plan::MalformedFile(fmt::format("{}: this is a {}; {}", file.string(), format, wanted));
  const auto first = beginning.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string::npos || (beginning[first] != '{' && beginning[first] != '['))
    throw plan::MalformedFile(
        fmt::format("{}: {}; {}", file.string(),
                    beginning.empty() ? "it is empty" : "it is not a timeline", wanted));
  return read_chrome_trace(file, problems);
}

// ---- writing

/// Returns the text as JSON, with quotes.
std::string in_json(const std::string& text) { return plan::Json(text).dump(); }

std::string in_csv(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos)
    return text;
  std::string quoted = "\"";
  for (const char letter : text) {
    quoted += letter;
    if (letter == '"')
      quoted += letter;
  }
  return quoted + '"';
}

/// Buffers the output, so that the file is written in large pieces.
class Pieces {
 public:
  explicit Pieces(TextFile& file) : file_(file) {}
  std::back_insert_iterator<std::string> end() {
    constexpr std::size_t much = std::size_t{1} << 20U;
    if (text_.size() > much)
      flush();
    return std::back_inserter(text_);
  }
  void flush() {
    file_.write(text_);
    text_.clear();
  }

 private:
  TextFile& file_;
  std::string text_;
};

/// Writes a Chrome trace with the table's own ranks and tracks. Tracks of the same thread become
/// one thread again.
void write_foreign_trace(TextFile& file, const plan::EventTable& table) {
  Pieces pieces(file);
  fmt::format_to(pieces.end(), "{{\"displayTimeUnit\":\"ms\",\n\"traceEvents\":[");
  const char* separator = "\n";
  const auto add = [&] {
    fmt::format_to(pieces.end(), "{}", std::exchange(separator, ",\n"));
    return pieces.end();
  };
  for (int rank = 0; rank < table.ranks; ++rank)
    fmt::format_to(add(), R"({{"name":"process_name","ph":"M","pid":{},"args":{{"name":{}}}}})",
                   rank, in_json(rank_name(table, rank)));
  std::vector<std::string> names;
  for (const std::string& name : table.names)
    names.push_back(in_json(name));

  int thread = 0;
  for (const plan::EventTrack& track : table.tracks) {
    if (track.depth == 0)
      fmt::format_to(add(),
                     R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})",
                     track.rank, ++thread, in_json(track.name));
    for (std::uint64_t event = track.begin; event < track.end; ++event)
      fmt::format_to(add(),
                     FMT_COMPILE(R"({{"name":{},"ph":"X","pid":{},"tid":{},"ts":{},"dur":{}}})"),
                     names[table.name_of[event]], track.rank, thread, table.start[event] * 1e6,
                     (table.end[event] - table.start[event]) * 1e6);
  }
  for (int rank = 0; rank < table.ranks; ++rank)
    for (std::uint64_t at = table.memory_begins[static_cast<std::size_t>(rank)];
         at < table.memory_begins[static_cast<std::size_t>(rank) + 1]; ++at)
      fmt::format_to(add(),
                     R"({{"name":"memory","ph":"C","pid":{},"ts":{},"args":{{"held_bytes":{}}}}})",
                     rank, table.memory[at].time * 1e6, table.memory[at].bytes);
  fmt::format_to(pieces.end(), "\n]}}\n");
  pieces.flush();
}

void write_trace(const std::filesystem::path& file, const plan::EventTable& table) {
  TextFile text(file);
  if (plan::facts_of(table).is_iteration)
    text.write(plan::to_trace(plan::timeline_of(table)));
  else
    write_foreign_trace(text, table);
  text.finish();
}

void write_csv(const std::filesystem::path& file, const plan::EventTable& table) {
  TextFile text(file);
  Pieces pieces(text);
  fmt::format_to(pieces.end(), "rank,track,depth,action,start_s,end_s\n");
  std::vector<std::string> names;
  for (const std::string& name : table.names)
    names.push_back(in_csv(name));
  for (const plan::EventTrack& track : table.tracks) {
    const std::string name = in_csv(track.name);
    for (std::uint64_t event = track.begin; event < track.end; ++event)
      fmt::format_to(pieces.end(), FMT_COMPILE("{},{},{},{},{},{}\n"), track.rank, name,
                     track.depth, names[table.name_of[event]], table.start[event],
                     table.end[event]);
  }
  pieces.flush();
  text.finish();
}

void write_svg(const std::filesystem::path& file, const plan::EventTable& table) {
  if (table.size() > most_to_draw)
    throw plan::InputError(fmt::format("{}: {} events are too many for a picture: the limit is {}",
                                       file.string(), table.size(), most_to_draw));
  const plan::Timeline timeline = actions_of(table, file.string());
  plan::write_file(file, draw::to_svg(draw::timeline_scene({timeline}, timeline.name)));
}

// ---- actions

/// Returns the part of a timeline within an interval, with times since the interval's start.
plan::Timeline cut_out(const plan::Timeline& timeline, plan::Seconds start, plan::Seconds end) {
  plan::Timeline cut{.name = timeline.name,
                     .ranks = timeline.ranks,
                     .length = end - start,
                     .spans = {},
                     .memory = {}};
  for (plan::Span span : timeline.spans)
    if (span.start >= start && span.start < end) {
      span.start -= start;
      span.end = std::min(span.end, end) - start;
      cut.spans.push_back(std::move(span));
    }
  for (plan::MemorySample sample : timeline.memory)
    if (sample.time >= start && sample.time <= end) {
      sample.time -= start;
      cut.memory.push_back(sample);
    }
  return cut;
}

/// Without step marks, actions belong to one iteration if none repeats on a rank.
void require_one_iteration(const plan::Timeline& timeline, const std::string& name) {
  std::set<std::pair<int, std::string_view>> seen;
  for (const plan::Span& span : timeline.spans)
    if (plan::parse_action(span.action) && !seen.emplace(span.rank, span.action).second)
      throw plan::InputError(fmt::format(
          "{}: rank {} runs {} more than once, and no step is marked (\"ProfilerStep#7\"): how "
          "long an iteration takes is unknown; \"pipewright explain TRACES --timeline FILE\" "
          "finds one",
          name, span.rank, span.action));
}

/// Returns the step of median length if steps are marked, otherwise everything from the first
/// action to the last.
plan::Timeline one_iteration(const plan::Timeline& timeline, const plan::TimelineFacts& facts,
                             const std::string& name) {
  if (const plan::MarkedStep* const step = facts.typical_step()) {
    plan::Timeline cut = cut_out(timeline, step->start, step->end);
    if (!cut.spans.empty())
      return cut;
    throw plan::InputError(
        fmt::format("{}: no action of a pipeline in its step {}", name, step->number));
  }
  require_one_iteration(timeline, name);
  plan::Seconds start = timeline.length, end;
  for (const plan::Span& span : timeline.spans) {
    start = std::min(start, span.start);
    end = std::max(end, span.end);
  }
  return cut_out(timeline, start, end);
}

}  // namespace

plan::EventTable read_timeline_file(const std::filesystem::path& file,
                                    std::vector<std::string>& problems) {
  if (is_job_trace(file))
    if (auto table = job_timeline_in(file, problems))
      return std::move(*table);
  return read_any(file, Damage::Note, problems);
}

plan::Timeline read_timeline(const std::filesystem::path& file,
                             std::vector<std::string>& problems) {
  const std::string beginning = beginning_of(file);
  if (!plan::is_event_file(beginning) && format_in(beginning) == "timeline")
    return read_own_trace(file);
  return actions_of(read_any(file, Damage::Refuse, problems), file.string());
}

plan::Timeline actions_of(const plan::EventTable& table, const std::string& name) {
  const plan::TimelineFacts facts = plan::facts_of(table);
  if (facts.is_iteration)
    return plan::timeline_of(table);
  plan::EventTable actions = table;
  std::erase_if(actions.tracks,
                [](const plan::EventTrack& track) { return !is_pipeline_track(track.name); });
  if (actions.tracks.empty())
    throw plan::InputError(fmt::format(
        "{}: no actions of a pipeline in it: torch.distributed.pipelining marks them in a trace of "
        "torch's profiler, as \"PP:0F0\"",
        name));
  return one_iteration(plan::timeline_of(actions), facts, name);
}

void require_timeline_suffix(const std::filesystem::path& file) {
  const std::string suffix = file.extension();
  if (suffix != ".pwt" && suffix != ".json" && suffix != ".csv" && suffix != ".svg" &&
      !file.string().ends_with(".json.gz"))
    throw plan::InputError(
        fmt::format("{}: the format is unknown: use the suffix .pwt, .json, .json.gz, .csv "
                    "or .svg",
                    file.string()));
}

void write_timeline_file(const std::filesystem::path& file, const plan::EventTable& table) {
  require_timeline_suffix(file);
  const std::string suffix = file.extension();
  if (suffix == ".pwt")
    plan::write_event_file(file, table);
  else if (suffix == ".csv")
    write_csv(file, table);
  else if (suffix == ".svg")
    write_svg(file, table);
  else
    write_trace(file, table);
}

void write_timeline(const std::filesystem::path& file, const plan::Timeline& timeline) {
  if (file.extension() == ".pwt")
    return plan::write_event_file(file, plan::table_of(timeline));
  TextFile text(file);
  text.write(plan::to_trace(timeline));
  text.finish();
}

}  // namespace pipewright::trace
