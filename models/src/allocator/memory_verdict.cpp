#include "pipewright/models/allocator/memory_verdict.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "pipewright/plan/error.hpp"

namespace pipewright::models {
namespace {

std::string gib(plan::Bytes bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes.value) / 0x1p30);
}

/// Where more would be reserved than the device has: with the cache emptied in between, or with
/// segments that can grow, it may yet be enough.
void judge_overfull(MemoryVerdict& verdict, const plan::TransformerTraining& training,
                    const plan::Cut& cut, int rank, plan::Bytes memory) {
  const AllocatorOptions plain{.device_bytes = memory.value};
  if (const TrainingReplay within = fullest_replay(training, cut, rank, plain);
      !within.out_of_memory) {
    verdict.fits = Fits::But;
    verdict.reason = fmt::format("the cache has to be emptied, {} times in the first {} steps",
                                 within.counters.retries, replayed_steps);
    return;
  }
  const std::string fragments = gib(verdict.fragmentation()) + " are fragmentation";
  if (verdict.allocated > memory) {
    verdict.fits = Fits::No;
    verdict.reason = fmt::format("{} are allocated at once", gib(verdict.allocated));
    return;
  }
  const AllocatorOptions growing{.expandable_segments = true, .device_bytes = memory.value};
  const bool can_grow = !fullest_replay(training, cut, rank, growing).out_of_memory;
  verdict.fits = can_grow ? Fits::But : Fits::No;
  verdict.reason = can_grow
                       ? fragments + ": PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True is needed"
                       : fragments;
}

}  // namespace

std::string_view to_string(Fits fits) {
  switch (fits) {
    case Fits::Yes:
      return "fits";
    case Fits::But:
      return "fits, but";
    case Fits::No:
      break;
  }
  return "does not fit";
}

MemoryVerdict memory_verdict(const plan::TransformerTraining& training, const plan::Cut& cut,
                             int rank, plan::Bytes memory) {
  const AllocatorCounters counters = fullest_replay(training, cut, rank).counters;
  MemoryVerdict verdict{.allocated = {counters.peak_allocated},
                        .reserved = {counters.peak_reserved}};
  if (memory.value == 0)
    return verdict;
  verdict.left = memory - verdict.reserved;
  if (verdict.left < plan::Bytes{0}) {
    judge_overfull(verdict, training, cut, rank, memory);
  } else if (static_cast<double>(verdict.left.value) <
             memory_margin * static_cast<double>(memory.value)) {
    verdict.fits = Fits::But;
    verdict.reason = fmt::format(
        "only {} are left for what is outside the allocator, less than {:.0f} % of the device",
        gib(verdict.left), 100 * memory_margin);
  }
  return verdict;
}

ReservedMemory reserved_memory(const plan::TransformerTraining& training, const plan::Cut& cut,
                               int rank, plan::Bytes memory) {
  try {
    return {.verdict = memory_verdict(training, cut, rank, memory)};
  } catch (const plan::InputError& error) {
    return {.refused = error.what()};
  }
}

plan::Json to_json(const ReservedMemory& reserved) {
  if (!reserved.verdict)
    return {{"refused", reserved.refused}};
  const MemoryVerdict& own = *reserved.verdict;
  plan::Json json{{"allocated_bytes", own.allocated.value},
                  {"reserved_bytes", own.reserved.value},
                  {"fragmentation_bytes", own.fragmentation().value},
                  {"left_bytes", own.left.value},
                  {"verdict", to_string(own.fits)}};
  if (!own.reason.empty())
    json["reason"] = own.reason;
  return json;
}

}  // namespace pipewright::models
