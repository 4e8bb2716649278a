// Simulated records of a device, with times in microseconds.
#pragma once

#include <string>

#include "pipewright/profiler/activity/work_report.hpp"

namespace pipewright::test {

using profiler::GpuRecord;
using profiler::RecordKind;
using profiler::WorkRange;

constexpr profiler::Nanoseconds us(double microseconds) {
  return static_cast<profiler::Nanoseconds>(microseconds * 1000);
}

class SyntheticData {
 public:
  /// Adds a range of the host, such as "0F1", and returns its label.
  std::uint64_t range(const std::string& action, double start, double end, int rank = 0,
                      int layer = -1) {
    pass.ranges.push_back({pass.ranges.size() + 1, rank, plan::parse_instruction(action).value(),
                           layer, us(start), us(end)});
    return pass.ranges.back().label;
  }

  /// Adds a kernel and the call that submitted it. Label 0 stands for none, as in LibTorch's own
  /// threads.
  void kernel(const std::string& name, std::uint64_t label, double asked, double start, double end,
              std::uint32_t stream = 7, std::int64_t bytes = -1) {
    ++correlation_;
    GpuRecord call;
    call.kind = RecordKind::Call;
    call.name = number_of("cudaLaunchKernel");
    call.correlation = correlation_;
    call.start = us(asked) - 2000;
    call.end = us(asked);
    pass.activity.records.push_back(call);
    if (label != 0) {
      GpuRecord told;
      told.kind = RecordKind::Label;
      told.correlation = correlation_;
      told.label = label;
      pass.activity.records.push_back(told);
    }
    GpuRecord work;
    work.kind = bytes < 0 ? RecordKind::Kernel : RecordKind::Copy;
    work.name = number_of(name);
    work.context = context_;
    work.stream = stream;
    work.correlation = correlation_;
    work.start = us(start);
    work.end = us(end);
    work.bytes = bytes;
    pass.activity.records.push_back(work);
  }

  /// Makes later kernels run in this context of the device.
  void in_context(std::uint32_t context) { context_ = context; }

  profiler::RecordedPass pass;

 private:
  std::uint32_t number_of(const std::string& name) {
    auto& names = pass.activity.names;
    for (std::size_t n = 0; n < names.size(); ++n)
      if (names[n] == name)
        return static_cast<std::uint32_t>(n);
    names.push_back(name);
    return static_cast<std::uint32_t>(names.size() - 1);
  }

  std::uint32_t correlation_ = 0;
  std::uint32_t context_ = 0;
};

}  // namespace pipewright::test
