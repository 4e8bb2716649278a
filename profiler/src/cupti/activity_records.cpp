#include "cupti/activity_records.hpp"

#include <cupti.h>
#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

namespace pipewright::profiler {
namespace {

using Kernel = CUpti_ActivityKernel10;
using Copy = CUpti_ActivityMemcpy6;
using PeerCopy = CUpti_ActivityMemcpyPtoP4;
using Set = CUpti_ActivityMemset4;
using Call = CUpti_ActivityAPI;
using Label = CUpti_ActivityExternalCorrelation;
using Graph = CUpti_ActivityGraphTrace2;

/// Returns the size of a record of a kind that is enabled; CUPTI writes no others.
std::optional<std::size_t> size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(Kernel);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(Copy);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(PeerCopy);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(Set);
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return sizeof(Call);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(Label);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return sizeof(Graph);
    default:
      return {};
  }
}

template <class Record>
bool read(ActivityBytes rest, Record& record) {
  if (rest.size() < sizeof(Record))
    return false;
  std::memcpy(&record, rest.data(), sizeof(Record));
  return true;
}

std::optional<CUpti_ActivityKind> kind_at(ActivityBytes rest) {
  std::uint32_t kind = 0;
  if (rest.size() < sizeof kind)
    return {};
  std::memcpy(&kind, rest.data(), sizeof kind);
  return static_cast<CUpti_ActivityKind>(kind);
}

const char* copy_in_words(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "copy host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "copy device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "copy on the device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "copy device to device";
    default:
      return "copy";
  }
}

/// Returns a record with the properties that all kinds of work share.
template <class Record>
GpuRecord work_of(RecordKind kind, std::uint32_t name, const Record& record) {
  GpuRecord own;
  own.kind = kind;
  own.name = name;
  own.device = record.deviceId;
  own.context = record.contextId;
  own.stream = record.streamId;
  own.correlation = record.correlationId;
  own.start = record.start;
  own.end = record.end;
  return own;
}

template <class Record>
GpuRecord with_bytes(GpuRecord own, const Record& record) {
  own.bytes = static_cast<std::int64_t>(record.bytes);
  return own;
}

class Reader {
 public:
  Reader(RecordNames& names, const NameReader& kernel_name, const CallNamer& call_name,
         Activity& activity)
      : names_(names), kernel_name_(kernel_name), call_name_(call_name), activity_(activity) {}

  /// Appends the record at the beginning of `rest`. Returns false if it is cut off.
  bool append(ActivityBytes rest) {
    const auto kind = kind_at(rest);
    if (!kind)
      return false;
    switch (*kind) {
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return append_as<Kernel>(rest);
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        return append_as<Copy>(rest);
      case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return append_as<PeerCopy>(rest);
      case CUPTI_ACTIVITY_KIND_MEMSET:
        return append_as<Set>(rest);
      case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        return append_as<Graph>(rest);
      case CUPTI_ACTIVITY_KIND_DRIVER:
      case CUPTI_ACTIVITY_KIND_RUNTIME:
        return append_as<Call>(rest);
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        return append_as<Label>(rest);
      default:
        return true;  // unused; its kind was not enabled
    }
  }

 private:
  template <class Record>
  bool append_as(ActivityBytes rest) {
    Record record;
    if (!read(rest, record))
      return false;
    activity_.records.push_back(made_of(record));
    return true;
  }

  GpuRecord made_of(const Kernel& kernel) {
    return work_of(RecordKind::Kernel, kernel_name_(kernel.name), kernel);
  }
  GpuRecord made_of(const Copy& copy) { return copied(copy); }
  GpuRecord made_of(const PeerCopy& copy) { return copied(copy); }
  GpuRecord made_of(const Set& set) {
    return with_bytes(work_of(RecordKind::Set, names_.number_of("set memory"), set), set);
  }
  GpuRecord made_of(const Graph& graph) {
    return work_of(RecordKind::Kernel, names_.number_of("CUDA graph"), graph);
  }
  GpuRecord made_of(const Call& call) {
    GpuRecord own;
    own.kind = RecordKind::Call;
    own.name = names_.number_of(call_name_(call.kind == CUPTI_ACTIVITY_KIND_RUNTIME, call.cbid));
    own.thread = call.threadId;
    own.correlation = call.correlationId;
    own.start = call.start;
    own.end = call.end;
    return own;
  }
  GpuRecord made_of(const Label& label) {
    GpuRecord own;
    own.kind = RecordKind::Label;
    own.name = names_.number_of("label");
    own.correlation = label.correlationId;
    own.label = label.externalId;
    return own;
  }
  template <class Record>
  GpuRecord copied(const Record& copy) {
    const auto name = names_.number_of(copy_in_words(copy.copyKind));
    return with_bytes(work_of(RecordKind::Copy, name, copy), copy);
  }

  RecordNames& names_;
  const NameReader& kernel_name_;
  const CallNamer& call_name_;
  Activity& activity_;
};

std::string readable(const char* name) {
  int failed = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &failed), &std::free);
  return failed == 0 && text ? text.get() : name;
}

}  // namespace

RecordPlaces record_places(ActivityBytes buffer) {
  RecordPlaces places;
  for (;;) {
    const auto kind = kind_at(buffer.subspan(places.end));
    const auto size = kind ? size_of(*kind) : std::nullopt;
    if (!size || buffer.size() - places.end < *size)
      return places;
    places.begins.push_back(places.end);
    places.end += *size;
  }
}

std::size_t end_of_record(ActivityBytes buffer, std::size_t begin) {
  const auto kind = kind_at(buffer.subspan(begin));
  const auto size = kind ? size_of(*kind) : std::nullopt;
  return std::min(begin + size.value_or(0), buffer.size());
}

std::uint32_t RecordNames::number_of(const std::string& name) {
  const auto [at, is_new] = numbers_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (is_new)
    names_.push_back(name);
  return at->second;
}

std::uint32_t RecordNames::number_at(const char* name) {
  if (name == nullptr)
    return number_of("a kernel without a name");
  const auto known = numbers_.find(name);
  if (known != numbers_.end())
    return known->second;
  const std::uint32_t number = number_of(readable(name));
  numbers_.emplace(name, number);
  return number;
}

void append_records(ActivityBytes buffer, const std::vector<std::size_t>& begins,
                    RecordNames& names, const NameReader& kernel_name, const CallNamer& call_name,
                    Activity& activity) {
  Reader reader(names, kernel_name, call_name, activity);
  for (std::size_t r = 0; r < begins.size(); ++r) {
    const std::size_t begin = begins[r];
    const std::size_t end = r + 1 < begins.size() ? begins[r + 1] : buffer.size();
    if (begin > end || end > buffer.size() || !reader.append(buffer.subspan(begin, end - begin)))
      activity.unread += begin < buffer.size() ? buffer.size() - begin : 0;
  }
}

}  // namespace pipewright::profiler
