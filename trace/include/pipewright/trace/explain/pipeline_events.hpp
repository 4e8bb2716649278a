#pragma once

// The pipeline-related events in one rank's trace: ranges named after actions, operators, the
// arrows from a forward operator to its backward, and the work of its device.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::trace {

enum class RangeKind {
  Action,        // "PP:2F0", of torch's schedule runtime
  Forward,       // "Forward 3", of torch's GPipe
  Backward,      // "Backward 3"
  ForwardCall,   // a Python function that runs a forward, if the profiler recorded stacks
  BackwardCall,  // the same for a backward
  Step,          // "ProfilerStep#7"
  Optimizer,     // "Optimizer.step#AdamW.step"
  Send,          // "gloo:send": from its start until the end of the wait for it
  Receive,       // "gloo:recv": likewise
  Passing,       // "send_forward_recv_backward", …: Megatron's, between its actions
};

enum class OperatorKind { Compute, Engine, Send, Receive, Collective };

/// A process group of which the traced rank is a member, as ranks of the job.
struct RankGroup {
  std::string description;  // "mesh_pp", "PIPELINE_MODEL_PARALLEL_GROUP"
  std::vector<int> ranks{};
};

/// Times are in seconds since `origin_ns`, or since the first event if that is unknown.
struct PipelineEvents {
  struct Range {
    RangeKind kind = RangeKind::Action;
    double start = 0;
    double end = 0;
    std::string name{};    // the text after the mark: "2F0", "3", "7"
    std::string stream{};  // device stream, if the range mirrors a host range; empty: the host's
                           // own
  };
  /// An outermost operator on a thread that runs forwards or backwards.
  struct Operator {
    double start = 0;
    double end = 0;
    OperatorKind kind = OperatorKind::Compute;
    std::uint32_t name = 0;
  };
  /// Leads from a forward operator to its backward in the autograd engine (`fwdbwd`).
  struct Arrow {
    double from = 0;
    double to = 0;
  };
  /// A kernel or copy, with the time at which the host launched it.
  struct DeviceWork {
    double launched = 0;
    double start = 0;
    double end = 0;
  };

  std::string file{};
  std::optional<int> rank{};
  std::optional<int> world_size{};
  std::vector<RankGroup> groups{};
  std::optional<std::int64_t> origin_ns{};  // nanoseconds since 1970
  bool interleaves = false;                 // Megatron's interleaved schedule (several stages per
                                            // rank)
  bool cut_off = false;                     // the file is truncated
  std::vector<std::string> names{};         // names of operators
  std::vector<Range> ranges{};              // this and the next three are sorted by time
  std::vector<Operator> operators{};
  std::vector<Arrow> arrows{};
  std::vector<DeviceWork> device{};
};

inline constexpr std::size_t events_between_questions = 4096;

/// Reads `{"traceEvents": […]}` or a bare list, also gzipped, and skips all events that do not
/// concern the pipeline. Throws and fills `problems` as `read_chrome_trace` does. `ask` is called
/// every `events_between_questions` events and may throw to cancel.
PipelineEvents read_pipeline_events(
    const std::filesystem::path& file, std::vector<std::string>& problems,
    const std::function<void()>& ask = [] {});

/// Reads the ranks of one file. A trace of torch's profiler has one rank; an SQLite export of
/// Nsight Systems (`nsys export --type sqlite`) has one for each process with ranges. Throws
/// InputError that names file, table and column if the export differs from NVIDIA's schema. `ask`
/// as above.
std::vector<PipelineEvents> read_ranks(
    const std::filesystem::path& file, std::vector<std::string>& problems,
    const std::function<void()>& ask = [] {});

}  // namespace pipewright::trace
