// Simulated CUPTI buffers: complete, cut off, and with a kind that was not enabled.

#include <cupti.h>
#include <dlfcn.h>

#include <cstring>
#include <random>

#include "activity/buffer_pool.hpp"
#include "cupti/activity_records.hpp"
#include "cupti/cupti_library.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/profiler/activity/activity_source.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/skip.hpp"

namespace cupti_records_test {

using namespace pipewright::profiler;

class MadeUpBuffer {
 public:
  template <class Record>
  MadeUpBuffer& add(CUpti_ActivityKind kind, Record record) {
    record.kind = kind;
    const auto at = bytes.size();
    bytes.resize(at + sizeof record);
    std::memcpy(bytes.data() + at, &record, sizeof record);
    return *this;
  }
  std::vector<std::uint8_t> bytes;
};

/// Makes a record. CUPTI's records have no common base, so an initializer cannot name these fields.
template <class Record>
Record made_up(std::uint32_t correlation, std::uint64_t start, std::uint64_t end) {
  Record record{};
  record.correlationId = correlation;
  record.start = start;
  record.end = end;
  return record;
}

MadeUpBuffer one_of_each() {
  auto kernel = made_up<CUpti_ActivityKernel10>(7, 100, 160);
  kernel.name = "_ZN5magma4gemmEif";
  kernel.deviceId = 1;
  kernel.contextId = 2;
  kernel.streamId = 13;
  auto copy = made_up<CUpti_ActivityMemcpy6>(8, 200, 210);
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.bytes = 4096;
  auto peer = made_up<CUpti_ActivityMemcpyPtoP4>(9, 220, 230);
  peer.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  peer.bytes = 64;
  auto set = made_up<CUpti_ActivityMemset4>(10, 240, 250);
  set.bytes = 32;
  auto call = made_up<CUpti_ActivityAPI>(7, 90, 95);
  call.threadId = 5;
  call.cbid = 41;
  CUpti_ActivityExternalCorrelation label{};
  label.correlationId = 7;
  label.externalId = 42;
  MadeUpBuffer made;
  made.add(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kernel)
      .add(CUPTI_ACTIVITY_KIND_MEMCPY, copy)
      .add(CUPTI_ACTIVITY_KIND_MEMCPY2, peer)
      .add(CUPTI_ACTIVITY_KIND_MEMSET, set)
      .add(CUPTI_ACTIVITY_KIND_RUNTIME, call)
      .add(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, label)
      .add(CUPTI_ACTIVITY_KIND_DRIVER, call)
      .add(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, made_up<CUpti_ActivityGraphTrace2>(11, 300, 400));
  return made;
}

std::string nth_call(bool of_runtime, std::uint32_t number) {
  return (of_runtime ? "runtime call " : "driver call ") + std::to_string(number);
}

Activity read_all(const std::vector<std::uint8_t>& bytes, const std::vector<std::size_t>& begins) {
  Activity activity;
  RecordNames names;
  append_records(
      bytes, begins, names, [&](const char* name) { return names.number_at(name); }, nth_call,
      activity);
  activity.names = names.names();
  return activity;
}

TEST_CASE("Each kind of CUPTI record is converted", "[cupti]") {
  const auto made = one_of_each();
  const RecordPlaces places = record_places(made.bytes);
  CHECK(places.end == made.bytes.size());
  const Activity activity = read_all(made.bytes, places.begins);
  REQUIRE(activity.records.size() == 8);
  const auto name = [&](std::size_t r) { return activity.names[activity.records[r].name]; };
  const GpuRecord& kernel = activity.records[0];
  CHECK(kernel.kind == RecordKind::Kernel);
  CHECK(name(0) == "magma::gemm(int, float)");
  CHECK(kernel.device == 1);
  CHECK(kernel.context == 2);
  CHECK(kernel.stream == 13);
  CHECK(kernel.correlation == 7);
  CHECK(kernel.start == 100);
  CHECK(kernel.end == 160);
  CHECK(kernel.bytes == -1);
  CHECK(name(1) == "copy host to device");
  CHECK(activity.records[1].bytes == 4096);
  CHECK(name(2) == "copy device to device");
  CHECK(activity.records[3].kind == RecordKind::Set);
  CHECK(activity.records[3].bytes == 32);
  CHECK(activity.records[4].kind == RecordKind::Call);
  CHECK(name(4) == "runtime call 41");
  CHECK(name(6) == "driver call 41");
  CHECK(activity.records[4].thread == 5);
  CHECK(activity.records[4].end == 95);
  CHECK(activity.records[5].kind == RecordKind::Label);
  CHECK(activity.records[5].label == 42);
  CHECK(name(7) == "CUDA graph");
  CHECK(activity.unread == 0);
}

TEST_CASE("A truncated buffer is read up to its end and no further", "[cupti]") {
  const auto whole = one_of_each().bytes;
  const std::vector<std::size_t> begins = record_places(whole).begins;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const std::vector<std::uint8_t> part(whole.begin(),
                                         whole.begin() + static_cast<std::ptrdiff_t>(size));
    const RecordPlaces places = record_places(part);
    const Activity activity = read_all(part, places.begins);
    CHECK(activity.records.size() == places.begins.size());
    CHECK(activity.unread == 0);
    // If record offsets are given, missing bytes are counted.
    std::vector<std::size_t> told;
    for (const std::size_t begin : begins)
      if (begin < size)
        told.push_back(begin);
    const Activity lost = read_all(part, told);
    CHECK(lost.records.size() == places.begins.size());
    CHECK(lost.unread == size - places.end);
  }
}

TEST_CASE("Bytes that are not records are not read as records", "[cupti]") {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint8_t> bytes(random() % 600);
    for (auto& byte : bytes)
      byte = static_cast<std::uint8_t>(random() % 12);
    Activity activity;
    RecordNames names;
    // Names are not dereferenced.
    append_records(
        bytes, record_places(bytes).begins, names, [&](const char*) { return 0U; }, nth_call,
        activity);
    append_records(
        bytes, {0, 8, 4, 700}, names, [&](const char*) { return 0U; }, nth_call, activity);
  }
  CHECK(record_places({}).begins.empty());
  auto made = one_of_each();
  CUpti_ActivityEnvironment environment{};
  made.add(CUPTI_ACTIVITY_KIND_ENVIRONMENT, environment);
  CHECK(record_places(made.bytes).begins.size() == 8);
}

TEST_CASE("CUPTI's own library finds the same records in a buffer", "[cupti]") {
  if (dlopen("libcupti.so.13", RTLD_LAZY) == nullptr)
    pipewright::test::skip(dlerror());
  auto bytes = one_of_each().bytes;
  std::vector<std::size_t> begins;
  CUpti_Activity* record = nullptr;
  while (CuptiLibrary::get().next_record(bytes.data(), bytes.size(), &record) == CUPTI_SUCCESS)
    begins.push_back(
        static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(record) - bytes.data()));
  CHECK(begins == record_places(bytes).begins);
}

TEST_CASE("Names are demangled and stored once, and null has a name", "[cupti]") {
  RecordNames names;
  CHECK(names.number_at("_Z3foov") == names.number_at("_Z3foov"));
  CHECK(names.number_of("foo()") == names.number_at("_Z3foov"));
  names.number_at(nullptr);
  names.number_at("not mangled");
  CHECK(names.names() ==
        std::vector<std::string>{"foo()", "a kernel without a name", "not mangled"});
}

TEST_CASE("Another user of CUPTI and a driver that forbids it are reported with advice",
          "[cupti]") {
  CHECK(advice(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "CUPTI for Nsight Systems")
            .find("CUPTI for Nsight Systems watches this process already") == 0);
  CHECK(advice(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED).find("another profiler") == 0);
  CHECK(advice(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES).find("administrators") != std::string::npos);
  CHECK(advice(CUPTI_ERROR_UNKNOWN).empty());
}

TEST_CASE("Without a GPU, making the CUPTI source fails with the reason", "[cupti]") {
  if (!pipewright::exec::gpus().names.empty())
    pipewright::test::skip("this machine has a GPU");
  const auto why = pipewright::test::error_of([] { cupti_source(); });
  CHECK(why.find("CUPTI: no GPU: ") == 0);
}

TEST_CASE("Buffers are allocated in advance, zeroed when returned, and counted when allocated late",
          "[cupti]") {
  BufferPool pool(16, 2, 3);
  std::uint8_t* const first = pool.take();
  std::uint8_t* const second = pool.take();
  CHECK(pool.late() == 0);
  std::uint8_t* const third = pool.take();
  REQUIRE(third != nullptr);
  CHECK(pool.late() == 1);
  CHECK(pool.take() == nullptr);  // those records are dropped, and CUPTI counts them
  CHECK(pool.out() == 3);
  first[3] = 9;
  pool.fill(second, 4);
  pool.fill(first, 99);
  pool.fill(first, 99);  // the second call has no effect
  CHECK(pool.out() == 1);
  std::uint8_t stranger = 0;
  pool.fill(&stranger, 1);
  const auto filled = pool.filled();
  REQUIRE(filled.size() == 2);
  CHECK(filled[0].data == second);
  CHECK(filled[1].used == 16);
  CHECK(pool.filled().empty());
  for (const auto& buffer : filled)
    pool.give_back(buffer);
  CHECK(first[3] == 0);
  CHECK(pool.take() != nullptr);
  CHECK(pool.late() == 0);
}

}  // namespace cupti_records_test
