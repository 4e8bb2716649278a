#include "pipewright/gui/document/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

#include "pipewright/gui/document/job_rows.hpp"
#include "pipewright/loop/predict/schedule_figures.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/lower/program_csv.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "pipewright/plan/timeline/shard_waits.hpp"
#include "pipewright/plan/timeline/trace.hpp"
#include "pipewright/sim/causes/idle.hpp"
#include "pipewright/sim/causes/measured_times.hpp"
#include "pipewright/trace/files/schedule_file.hpp"
#include "pipewright/trace/files/thread_rows.hpp"
#include "pipewright/trace/files/timeline_file.hpp"
#include "pipewright/trace/straggler/job_timeline.hpp"

namespace pipewright::gui {
namespace {

namespace fs = std::filesystem;

/// JSON larger than this is not opened as JSON.
constexpr std::uintmax_t most_json = 4'000'000'000;

/// Adds each line of a message as a problem. `what` is prepended unless the line already names it.
void add_problem(Document& document, const std::string& what, const std::string& message) {
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty())
      continue;
    const bool named = what.empty() || line.find(what) != std::string::npos;
    document.problems.push_back(named ? line : fmt::format("{}: {}", what, line));
  }
}

/// Runs a part of the reading. Its exceptions become problems, and reading continues.
template <class Part>
bool tried(Document& document, const std::string& what, Part&& part) {
  try {
    part();
    return true;
  } catch (const std::bad_alloc&) {
    add_problem(document, what, "is too large for this machine's memory");
  } catch (const std::exception& error) {
    add_problem(document, what, error.what());
  }
  return false;
}

/// Throws InputError for a path that exists but cannot be read as a file: a device, a pipe, or a
/// file without read permission.
void require_readable(const fs::path& path) {
  if (!fs::is_regular_file(path))
    throw plan::InputError("is neither a file nor a folder");
  if (!std::ifstream(path, std::ios::binary))
    throw plan::InputError("cannot be read: you have no permission");
  if (fs::file_size(path) == 0)
    throw plan::InputError("is empty");
}

plan::JsonDocument read_json(const fs::path& path) {
  require_readable(path);
  if (fs::file_size(path) > most_json)
    throw plan::InputError(fmt::format("is {:.1f} GB of JSON, but at most {:.0f} GB can be read",
                                       static_cast<double>(fs::file_size(path)) / 1e9,
                                       most_json / 1e9));
  return plan::JsonDocument::read(path);
}

/// Shows a timeline together with what the document's Program explains: causes of idle time, and
/// the critical path.
void show_explained(Document& document, plan::Timeline timeline) {
  const sim::Structure& structure = *document.structure;
  const std::vector<std::size_t> spans = sim::spans_of(structure, timeline);
  EventTimes ran{sim::times_of(structure, timeline, spans), {}};
  if (timeline.idle.empty()) {
    timeline.idle = sim::IdleCauses(structure).of(ran.times).spans;
    timeline = plan::with_shard_waits(std::move(timeline));
  }
  if (timeline.critical.empty())
    for (const int event : sim::measured_critical_path(structure, ran.times))
      timeline.critical.push_back(spans[static_cast<std::size_t>(event)]);
  std::vector<std::uint64_t> place_of;  // by span
  document.measured = plan::table_of(timeline, &place_of);
  for (const std::size_t span : spans)
    ran.places.push_back(place_of[span]);
  document.ran = std::move(ran);
}

/// Shows a Program without times as if all its actions took equally long.
void open_program(Document& document, plan::Program program) {
  document.kind = Document::Kind::Program;
  plan::validate(program);
  document.structure = std::make_shared<sim::Structure>(program);
  plan::Timeline timeline = loop::timed(program, plan::equal_costs({1e-3}, {1e-3}, {1e-3}));
  timeline.name = "equal costs";
  show_explained(document, std::move(timeline));
  document.notes.push_back(
      "No costs are known: every forward takes 1 ms, every backward 2 ms, transfers no time.");
}

// ---- folders

/// Files of a run, in the order in which it writes them.
constexpr std::array run_files{"costs.json", "partition.json", "program.json",
                               "predicted.trace.json", "steps.jsonl"};

/// Reads the folder of a `run` or `train`, finished or not, file by file: an error in one file is a
/// problem, and the others are shown.
class RunReader {
 public:
  RunReader(Document& document, const fs::path& folder)
      : document_(document), folder_(folder), ended_(fs::exists(folder / "report.json")) {}

  void read() {
    document_.kind = Document::Kind::Run;
    read_plan();
    read_prediction();
    read_steps();
    read("report.json", [&](const auto& json) { run_.report = json.root(); });
    if (whole_)
      document_.run = std::move(run_);
  }

 private:
  template <class Use>
  bool read(const char* name, Use&& use) {
    const fs::path file = folder_ / name;
    return fs::exists(file) && tried(document_, file.string(), [&] { use(read_json(file)); });
  }

  /// A missing file is not a problem while the run is still going on.
  template <class Use>
  void need(const char* name, Use&& use) {
    if (!fs::exists(folder_ / name)) {
      whole_ = false;
      (ended_ ? document_.problems : document_.notes)
          .push_back(fmt::format("{}: is {}", (folder_ / name).string(),
                                 ended_ ? "missing" : "not there yet"));
    } else if (!read(name, use)) {
      whole_ = false;
    }
  }

  void read_plan() {
    need("scenario.json", [&](const auto& json) {
      run_.scenario = plan::scenario_from_json(json);
      document_.scenario = run_.scenario;
    });
    need("costs.json", [&](const auto& json) {
      run_.costs = plan::layer_costs_from_json(json);
      document_.costs = run_.costs;
    });
    need("partition.json",
         [&](const auto& json) { run_.partition = plan::partition_from_json(json).partition; });
    need("program.json", [&](const auto& json) {
      run_.program = plan::program_from_json(json);
      plan::validate(run_.program);
      document_.structure = std::make_shared<sim::Structure>(run_.program);
    });
  }

  void read_prediction() {
    need("predicted.trace.json", [&](const auto& json) {
      run_.predicted = plan::timeline_from_trace(json);
      document_.predicted = plan::table_of(run_.predicted);
    });
    read("rehearsed_costs.json", [&](const auto& json) {
      run_.rehearsed_costs = plan::layer_costs_from_json(json);
      document_.costs = run_.rehearsed_costs;
    });
  }

  /// During training, shows the last step instead of the typical one.
  void read_steps() {
    const bool measured = fs::exists(folder_ / "measured.trace.json");
    read(measured ? "measured.trace.json" : "last_step.trace.json", [&](const auto& json) {
      const plan::Timeline timeline = plan::timeline_from_trace(json);
      document_.measured = plan::table_of(timeline);
      if (measured)
        run_.measured = timeline;
      else
        document_.notes.push_back("The run has not ended: its last step so far is shown.");
      if (document_.structure)
        show_explained(document_, timeline);
    });
  }

  Document& document_;
  const fs::path& folder_;
  const bool ended_;
  bool whole_ = true;
  loop::StoredRun run_;
};

// ---- files

void open_scenario(Document& document, const plan::JsonDocument& json, const fs::path& path) {
  document.kind = Document::Kind::Scenario;
  document.scenario = plan::scenario_from_json(json);
  const fs::path beside = path.parent_path() / "costs.json";
  if (fs::exists(beside))
    tried(document, beside.string(),
          [&] { document.costs = plan::layer_costs_from_json(read_json(beside)); });
  else
    document.notes.push_back(
        "There is no costs.json next to the scenario, so layers' costs are estimated from the "
        "model.");
}

/// A job whose trace is not whole is opened as any other trace.
bool is_opened_as_job(Document& document, const fs::path& path) {
  if (!trace::is_job_trace(path))
    return false;
  std::vector<std::string> problems;
  try {
    auto trace = std::make_shared<trace::JobTrace>(trace::read_job_trace(path, problems));
    document.measured = trace::job_timeline(trace::job_steps(*trace), by_rank(trace->layout));
    document.job = std::move(trace);
  } catch (const plan::InputError& error) {
    document.notes.push_back(fmt::format("Its stragglers are not explained: {}", error.what()));
    return false;
  }
  document.problems.insert(document.problems.end(), problems.begin(), problems.end());
  return true;
}

/// Opens native files, Pipewright's traces and foreign ones, of any size.
void open_timeline(Document& document, const fs::path& path) {
  document.kind = Document::Kind::Timeline;
  if (is_opened_as_job(document, path))
    return;
  document.measured = trace::with_thread_rows(trace::read_timeline_file(path, document.problems));
}

/// Returns the first characters of a file after white space, which determine its type: the file may
/// be too large to read as a whole.
std::string beginning_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  stream >> std::ws;
  std::string begin(4096, ' ');
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(stream.gcount()));
  return begin;
}

bool is_trace(const std::string& begin) {
  return begin.front() == '[' || begin.find("\"traceEvents\"") != std::string::npos ||
         begin.find("\"displayTimeUnit\"") != std::string::npos ||
         begin.find("\"deviceProperties\"") != std::string::npos;
}

void open_json(Document& document, const fs::path& path, const std::string& begin) {
  if (is_trace(begin)) {
    open_timeline(document, path);
    return;
  }
  const plan::JsonDocument json = read_json(path);
  const plan::Json& root = json.root();
  if (root.is_object() && root.contains("traceEvents")) {
    open_timeline(document, path);
  } else if (root.is_object() && (root.contains("pipeline") || root.contains("model"))) {
    open_scenario(document, json, path);
  } else if (root.is_object() && root.contains("ranks")) {
    open_program(document, plan::program_from_json(json));
  } else {
    throw plan::InputError(
        "is JSON, but neither a scenario (\"pipeline\"), a timeline (\"traceEvents\") nor a "
        "Program (\"ranks\")");
  }
}

void open_file(Document& document, const fs::path& path) {
  require_readable(path);
  const std::string begin = beginning_of(path);
  // Native timelines and gzipped files are binary, since text contains no zero bytes.
  if (begin.find('\0') != std::string::npos) {
    open_timeline(document, path);
    return;
  }
  const char first = begin.empty() ? '\0' : begin.front();
  if (first == '{' || first == '[')
    open_json(document, path, begin);
  else if (path.extension() == ".json" || path.extension() == ".jsonl") {
    read_json(path);  // throws if the JSON is invalid, and says where
    throw plan::InputError("is JSON, but neither an object nor a list");
  } else if (std::string_view("0123456789(,\"").find(first) == std::string_view::npos)
    throw plan::InputError(
        "is neither JSON nor a schedule, which would begin with an action such as 0F0");
  else
    open_program(document, trace::read_schedule(path.string(), {}).program);
}

void open_folder(Document& document, const fs::path& folder) {
  const bool is_run = std::any_of(run_files.begin() + 1, run_files.end(),
                                  [&](const char* name) { return fs::exists(folder / name); });
  if (is_run)
    RunReader(document, folder).read();
  else if (fs::exists(folder / "scenario.json"))
    open_scenario(document, read_json(folder / "scenario.json"), folder / "scenario.json");
  else
    throw plan::InputError("contains neither a run nor a scenario.json");
}

}  // namespace

Document open_document(const fs::path& path) {
  Document document;
  document.path = path;
  document.title =
      path.filename().empty() ? path.parent_path().filename().string() : path.filename().string();
  tried(document, path.string(), [&] {
    if (!fs::exists(path))
      throw plan::InputError("there is no such file or folder");
    if (fs::is_directory(path))
      open_folder(document, path);
    else
      open_file(document, path);
  });
  return document;
}

}  // namespace pipewright::gui
