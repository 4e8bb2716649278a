// Large synthetic timelines, for tests and benchmarks of reading and painting them.
#pragma once

#include <fmt/compile.h>
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::test {

/// A random number generator, the same every time.
class Die {
 public:
  std::uint32_t below(std::uint32_t sides) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<std::uint32_t>(((state_ >> 33U) * sides) >> 31U);
  }

 private:
  std::uint64_t state_ = 1;
};

/// Returns forwards, backwards and transfers of many steps: `events` in all, spread evenly over the
/// ranks, with gaps between them. Idle time, memory and a critical path are included.
inline plan::EventTable made_up_events(std::uint64_t events, int ranks) {
  constexpr std::uint32_t microbatches = 64;
  const std::vector<std::string> kinds{"F", "B", "SEND_F", "RECV_B", "REDUCE_GRAD"};
  struct RowShare {
    plan::Row row;
    const char* name;
    std::uint32_t kind, kinds;
    double share;
  };
  const std::vector<RowShare> rows{{plan::Row::Compute, "compute", 0, 2, 0.5},
                                   {plan::Row::Send, "send", 2, 1, 0.2},
                                   {plan::Row::Receive, "receive", 3, 1, 0.2},
                                   {plan::Row::Reduce, "reduce", 4, 1, 0.1}};

  auto columns = std::make_shared<plan::EventColumns>();
  plan::EventTable table{.name = "made up", .ranks = ranks, .length = {}};
  for (int rank = 0; rank < ranks; ++rank)
    for (const std::string& kind : kinds)
      for (std::uint32_t microbatch = 0; microbatch < microbatches; ++microbatch)
        table.names.push_back(fmt::format("{}{}{}", rank, kind, microbatch));
  columns->reserve(events);
  Die die;
  double length = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto share_of = [&](int r) {
      return events * static_cast<std::uint64_t>(r) / static_cast<std::uint64_t>(ranks);
    };
    const std::uint64_t of_rank = share_of(rank + 1) - share_of(rank);
    columns->memory_begins.push_back(columns->memory.size());
    std::uint64_t given = 0;
    for (const RowShare& row : rows) {
      const std::uint64_t count =
          row.row == plan::Row::Reduce
              ? of_rank - given
              : static_cast<std::uint64_t>(static_cast<double>(of_rank) * row.share);
      given += count;
      const std::uint64_t begin = columns->start.size();
      double time = rank * 1e-3;
      for (std::uint64_t i = 0; i < count; ++i) {
        const double gap = (i % microbatches == 0 ? 5e-4 : 1e-6) * (1 + die.below(8));
        if (row.row == plan::Row::Compute && i % 16 == 0) {
          columns->idle.push_back({time, time + gap, rank, die.below(7)});
          columns->memory.push_back(
              {time, (std::int64_t{1} << 30) + (std::int64_t{die.below(1000)} << 20)});
        }
        if (row.row == plan::Row::Compute && rank == 0 && i % 64 == 0)
          columns->critical.push_back(columns->start.size());
        const double start = time + gap;
        time = start + (50 + die.below(100)) * 1e-6 * 0.5 / row.share;
        columns->start.push_back(start);
        columns->end.push_back(time);
        const auto kind = row.kind + (row.kinds > 1 ? static_cast<std::uint32_t>(i & 1) : 0);
        columns->name_of.push_back(
            (static_cast<std::uint32_t>(rank) * static_cast<std::uint32_t>(kinds.size()) + kind) *
                microbatches +
            static_cast<std::uint32_t>(i / 2 % microbatches));
      }
      table.tracks.push_back({rank, row.row, row.name, begin, columns->start.size()});
      length = std::max(length, time);
    }
  }
  columns->memory_begins.push_back(columns->memory.size());
  table.length = {length};
  plan::set_columns(table, std::move(columns));
  return table;
}

/// Writes a file as torch's profiler would for one rank of a pipeline, with at least `bytes`; 350
/// MB are about two million events. Returns the number of events.
inline std::uint64_t write_made_up_kineto(const std::filesystem::path& file, std::uint64_t bytes,
                                          int rank = 0) {
  std::ofstream stream(file, std::ios::binary);
  std::string text = fmt::format(
      R"({{
  "schemaVersion": 1,
  "deviceProperties": [
    {{
      "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84929216512,
      "computeMajor": 9, "computeMinor": 0, "numSms": 132
    }}
  ],
  "distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": 8, "pg_count": 2}},
  "with_stack": 0,
  "traceEvents": [)",
      rank);
  std::uint64_t events = 0, written = 0, correlation = 1;
  const auto to = [&] {
    constexpr std::size_t much = std::size_t{1} << 20U;
    if (text.size() > much) {
      written += text.size();
      stream << text;
      text.clear();
    }
    text += ++events == 1 ? "\n  " : ",\n  ";
    return std::back_inserter(text);
  };
  // Times in ns.
  const auto span = [&](const char* category, const std::string& name, int process, int thread,
                        std::uint64_t start, std::uint64_t duration, const std::string& args) {
    fmt::format_to(to(),
                   FMT_COMPILE("{{\n    \"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": "
                               "{}, \"tid\": {},\n    \"ts\": {}.{:03}, \"dur\": {}.{:03},\n    "
                               "\"args\": {{\n      {}\n    }}\n  }}"),
                   category, name, process, thread, start / 1000, start % 1000, duration / 1000,
                   duration % 1000, args);
  };
  static const std::vector<std::string> operators{
      "aten::addmm", "aten::mul", "aten::layer_norm", "aten::gelu", "aten::_softmax",
      "aten::copy_", "aten::t",   "aten::view",       "aten::bmm",  "aten::empty_strided"};
  constexpr int host = 4242;
  constexpr std::uint64_t day = 86'400'000'000'000;
  Die die;
  std::uint64_t time = 41 * day;
  for (int action = 0; written + text.size() < bytes; ++action) {
    const std::string name =
        fmt::format("PP:{}{}{}", rank, action % 2 == 0 ? 'F' : 'B', action / 2 % 64);
    const std::uint64_t begin = time;
    std::uint64_t device = begin + 20'000;
    time += 2'000;
    for (int op = 0; op < 100; ++op) {
      const std::uint64_t length = 8'000 + die.below(9'000);
      const std::string id = fmt::format("\"External id\": {}", correlation);
      span("cpu_op", operators[die.below(10)], host, host, time, length, id);
      span("cuda_runtime", "cudaLaunchKernel", host, host, time + 2'000, 3'000,
           fmt::format("\"correlation\": {}", correlation));
      span("kernel", fmt::format("void at::native::elementwise_kernel<{}>", die.below(400)), 0, 7,
           device, 6'000, fmt::format("\"stream\": 7, \"correlation\": {}", correlation));
      ++correlation;
      time += length + die.below(3'000);
      device = std::max(device + 6'500, time);
    }
    span("user_annotation", name, host, host, begin, time + 1'000 - begin, "\"External id\": 1");
    span("gpu_user_annotation", name, 0, 7, begin + 20'000, device - begin - 20'000,
         "\"External id\": 1");
    fmt::format_to(to(),
                   "{{\n    \"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": "
                   "\"[memory]\",\n    \"pid\": {}, \"tid\": {},\n    \"ts\": {}.000,\n    "
                   "\"args\": {{\n      \"Total Allocated\": {}, \"Device Id\": 0, \"Device "
                   "Type\": 1\n    }}\n  }}",
                   host, host, time / 1000, (1U << 30U) + die.below(1U << 20U));
    time = device + 5'000;
  }
  for (const auto& [process, label] : {std::pair{host, "CPU"}, std::pair{0, "GPU 0"}}) {
    fmt::format_to(to(),
                   "{{\n    \"name\": \"process_name\", \"ph\": \"M\", \"ts\": 0.000, \"pid\": {}, "
                   "\"tid\": 0,\n    \"args\": {{\n      \"name\": \"python3\"\n    }}\n  }}",
                   process);
    fmt::format_to(to(),
                   "{{\n    \"name\": \"process_labels\", \"ph\": \"M\", \"ts\": 0.000, \"pid\": "
                   "{}, \"tid\": 0,\n    \"args\": {{\n      \"labels\": \"{}\"\n    }}\n  }}",
                   process, label);
  }
  text += fmt::format(
      "\n  ],\n  \"traceName\": \"{}\",\n  \"displayTimeUnit\": \"ms\",\n  "
      "\"baseTimeNanoseconds\": 1712345678000000000\n}}\n",
      file.filename().string());
  stream << text;
  return events;
}

}  // namespace pipewright::test
