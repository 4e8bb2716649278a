#include "pipewright/trace/explain/pipeline_events.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "chrome/chrome_file.hpp"
#include "explain/event_gatherer.hpp"
#include "explain/nsys_events.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json.hpp"
#include "sqlite/sqlite_file.hpp"

namespace pipewright::trace {
namespace {

/// Functions in which runtimes run one microbatch's forward or backward through a stage:
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
constexpr std::uint64_t most_rank = 1'000'000'000;
constexpr std::string_view interleaving_function = ": forward_step_helper";

std::optional<RangeKind> kind_of_call(std::string_view name) {
  for (const PipelineFunction& own : pipeline_functions)
    if (name.ends_with(own.name) && name.find(own.file) != std::string_view::npos)
      return own.kind;
  return {};
}

/// Reads the groups from `{"rank": 0, "pg_config": [{"pg_desc": "mesh_pp", "ranks": [0, 2], …}, …],
/// …}`, as torch.distributed writes it. Entries of another form are ignored.
std::vector<RankGroup> groups_of(const std::string& distributed_info) {
  const auto info = plan::Json::parse(distributed_info, nullptr, /*allow_exceptions=*/false);
  std::vector<RankGroup> groups;
  if (!info.is_object() || !info.contains("pg_config") || !info["pg_config"].is_array())
    return groups;
  for (const plan::Json& config : info["pg_config"]) {
    if (!config.is_object() || !config.contains("pg_desc") || !config["pg_desc"].is_string() ||
        !config.contains("ranks") || !config["ranks"].is_array())
      continue;
    RankGroup group{.description = config["pg_desc"].get<std::string>()};
    for (const plan::Json& rank : config["ranks"])
      if (rank.is_number_unsigned() && rank.get<std::uint64_t>() < most_rank)
        group.ranks.push_back(rank.get<int>());
    if (group.ranks.size() == config["ranks"].size())
      groups.push_back(std::move(group));
  }
  return groups;
}

/// Classifies Kineto's events.
class KinetoReader {
 public:
  explicit KinetoReader(PipelineEvents& events) : events_(events), gatherer_(events) {}

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
    events_.groups = groups_of(header.distributed);
    gatherer_.finish(header.base_time);
  }

 private:
  std::uint32_t thread_of(const ChromeEvent& event) {
    if (event.thread == last_thread_text_ && event.process == last_process_text_)
      return last_thread_;
    last_thread_text_ = event.thread;
    last_process_text_ = event.process;
    return last_thread_ = threads_.number_of(last_process_text_ + " " + last_thread_text_);
  }

  void take_span(const ChromeEvent& event) {
    const double start = gatherer_.seconds(*event.start);
    const double end = EventGatherer::end_of(start, event.duration.value_or(Microseconds{}));
    if (end < start)
      return;
    if (event.category == "cpu_op")
      gatherer_.take_operator(thread_of(event), event.name, start, end);
    else if (event.category == "kernel" || event.category == "gpu_memcpy" ||
             event.category == "gpu_memset")
      gatherer_.take_work(thread_of(event), event.name, start, end);
    else if (event.category == "python_function")
      take_call(event.name, start, end);
    else if (const auto range = named_range(event.name))
      gatherer_.take_range(
          *range, start, end,
          event.category == "gpu_user_annotation" ? event.thread : std::string_view());
  }

  void take_call(std::string_view name, double start, double end) {
    if (const auto kind = kind_of_call(name))
      gatherer_.take_range({*kind, {}}, start, end);
    else if (name.ends_with(interleaving_function))
      events_.interleaves = true;
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
    using Arrow = EventGatherer::Arrow;
    gatherer_.take_arrow_end(is_autograd ? (event.phase == 's' ? Arrow::Forward : Arrow::Backward)
                                         : (event.phase == 's' ? Arrow::Launch : Arrow::Work),
                             id, thread_of(event), gatherer_.seconds(*event.start));
  }

  PipelineEvents& events_;
  EventGatherer gatherer_;
  Numbering threads_;
  std::string last_thread_text_ = "?", last_process_text_ = "?";
  std::uint32_t last_thread_ = 0;
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
  KinetoReader reader(events);
  const std::size_t before = problems.size();
  std::size_t taken = 0;
  read_chrome_file(file, header, list, parser, [&](const ChromeEvent& event) {
    if (++taken % events_between_questions == 0)
      ask();
    reader.take(event);
  });
  list.end_file();
  events.cut_off = problems.size() > before;
  reader.finish(header);
  return events;
}

std::vector<PipelineEvents> read_ranks(const std::filesystem::path& file,
                                       std::vector<std::string>& problems,
                                       const std::function<void()>& ask) {
  const std::string suffix = file.extension().string();
  if (suffix == ".nsys-rep" || suffix == ".qdrep")
    throw plan::InputError(
        fmt::format("{}: a report of Nsight Systems as recorded; export it first: "
                    "nsys export --type sqlite {}",
                    file.string(), file.filename().string()));
  if (suffix == ".sqlite" || is_sqlite_file(file))
    return read_nsys_ranks(file, ask);
  return {read_pipeline_events(file, problems, ask)};
}

}  // namespace pipewright::trace
