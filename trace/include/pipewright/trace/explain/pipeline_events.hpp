#pragma once

// What of a rank's trace speaks of its pipeline: ranges that are called after actions,
// operators, the arrows from a forward operator to its backward, and what its device did.

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
  ForwardCall,   // a Python function that runs one, where the profiler recorded stacks
  BackwardCall,  //
  Step,          // "ProfilerStep#7"
  Optimizer,     // "Optimizer.step#AdamW.step"
  Send,          // "gloo:send": from its start until somebody has waited for it
  Receive,       // "gloo:recv", likewise
  Passing,       // "send_forward_recv_backward", …: Megatron's, between its actions
};

enum class OperatorKind { Compute, Engine, Send, Receive, Collective };

/// A process group in which a rank is, by the job's ranks.
struct RankGroup {
  std::string description;  // "mesh_pp", "PIPELINE_MODEL_PARALLEL_GROUP"
  std::vector<int> ranks{};
};

/// Times are in seconds from `origin_ns` on, or from the first event where that is not known.
struct PipelineEvents {
  struct Range {
    RangeKind kind = RangeKind::Action;
    double start = 0;
    double end = 0;
    std::string name{};    // behind the mark: "2F0", "3", "7"
    std::string stream{};  // of the device whose twin it is; empty: the host's own
  };
  /// An operator that no other is around, on the threads that run forwards and backwards.
  struct Operator {
    double start = 0;
    double end = 0;
    OperatorKind kind = OperatorKind::Compute;
    std::uint32_t name = 0;
  };
  /// From a forward operator to its part of the autograd engine's work (`fwdbwd`).
  struct Arrow {
    double from = 0;
    double to = 0;
  };
  /// A kernel or a copy, and when the host asked for it.
  struct DeviceWork {
    double launched = 0;
    double start = 0;
    double end = 0;
  };

  std::string file{};
  std::optional<int> rank{};
  std::optional<int> world_size{};
  std::vector<RankGroup> groups{};
  std::optional<std::int64_t> origin_ns{};  // since 1970
  bool interleaves = false;                 // Megatron's schedule of several stages a rank
  bool cut_off = false;                     // the file is not whole
  std::vector<std::string> names{};         // of operators
  std::vector<Range> ranges{};              // these four by time
  std::vector<Operator> operators{};
  std::vector<Arrow> arrows{};
  std::vector<DeviceWork> device{};
};

inline constexpr std::size_t events_between_questions = 4096;

/// Reads `{"traceEvents": […]}` or a bare list, also gzipped; all else that a trace has is left
/// out. Throws as `read_chrome_trace` does, and fills `problems` as it does. `ask` is called every
/// `events_between_questions`, and may throw.
PipelineEvents read_pipeline_events(
    const std::filesystem::path& file, std::vector<std::string>& problems,
    const std::function<void()>& ask = [] {});

/// The ranks of one file: of a trace of torch's profiler one, of what Nsight Systems has exported
/// as SQLite (`nsys export --type sqlite`) one for each process that has ranges. Throws InputError
/// that names file, table and column where that is not as NVIDIA describes it. `ask` as above.
std::vector<PipelineEvents> read_ranks(
    const std::filesystem::path& file, std::vector<std::string>& problems,
    const std::function<void()>& ask = [] {});

}  // namespace pipewright::trace
