// CUPTI's possible behaviors, simulated by the stand-in, and how they are reported.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cupti/cupti_source.hpp"
#include "cupti/recorded_calls.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/profiler/activity/work_report.hpp"
#include "profiler/support/cupti_standin.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/skip.hpp"
#include "support/temp_folder.hpp"

namespace standin_test {

using namespace pipewright;
using namespace pipewright::profiler;
using test::CuptiStandin;
using test::work_by;

/// Returns what is recorded while a device does these pieces of work under label 1.
Activity recorded(const CuptiStandin& standin, ActivitySource& source,
                  const std::vector<PipewrightStandinWork>& works) {
  source.start();
  source.open(1);
  for (const PipewrightStandinWork& work : works)
    standin.hear(work);
  source.close();
  source.stop();
  return source.collect();
}

Activity recorded(const CuptiStandin& standin, const std::vector<PipewrightStandinWork>& works) {
  return recorded(standin, *watch_by(standin.library), works);
}

/// Makes two kernels and a copy.
std::vector<PipewrightStandinWork> three_works() {
  return {work_by("cudaLaunchKernel", "gemm", 1, 2, 5), work_by("cudaMemcpyAsync", "", 2, 5, 6),
          work_by("cudaLaunchKernel", "softmax", 3, 6, 8)};
}

RecordedPass pass_of(Activity activity) {
  return {std::move(activity),
          {{1, 0, plan::parse_instruction("0F0").value(), -1, Nanoseconds{0}, Nanoseconds{9000}}}};
}

WorkReport report_of(Activity activity) { return work_report({pass_of(std::move(activity))}); }

std::vector<std::string> kernel_names(const WorkReport& report) {
  std::vector<std::string> names;
  for (const KernelSum& kernel : report.kernels)
    names.push_back(kernel.name);
  return names;
}

const std::vector<std::string> all_three{"gemm", "softmax", "copy host to device"};

/// Returns the error with which a source is rejected.
std::string refusal(const std::string& words) {
  const CuptiStandin standin(words);
  return test::error_of([&] { watch_by(standin.library); });
}

TEST_CASE("Every call that submits work is recorded with its work", "[cupti]") {
  const CuptiStandin standin;
  for (const char* call :
       {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpy", "cudaMemcpyAsync",
        "cudaMemcpy2DAsync", "cudaMemcpyPeerAsync", "cudaMemcpy3DBatchAsync", "cudaMemset",
        "cudaMemset2DAsync", "cudaGraphLaunch", "cuLaunchKernelEx", "cuMemcpyBatchAsync",
        "cuMemcpyDtoDAsync", "cuMemcpyPeerAsync", "cuMemsetD16Async", "cuMemsetD2D32Async"}) {
    INFO(call);
    const Activity activity = recorded(standin, {work_by(call, "work", 1, 2, 3)});
    CHECK(attribute(activity, {}).without_call == 0);
    CHECK(std::find(activity.names.begin(), activity.names.end(), call) != activity.names.end());
  }
}

TEST_CASE("Calls that submit work are recognized by their names", "[cupti]") {
  for (const char* call : {"cudaMemcpy_v3020", "__cudaLaunchKernel_ptsz_v13000",
                           "cudaGraphLaunch_v10000", "cu64MemsetD2D16Async", "cuMemcpyHtoD_v2"})
    CHECK(gives_work(call));
  for (const char* call : {"cudaLaunchHostFunc_v10000", "cudaGraphAddMemcpyNode_v10000",
                           "cudaMemGetInfo_v3020", "cuMemSetAccess", "cudaMalloc_v3020", ""})
    CHECK_FALSE(gives_work(call));
  CHECK(without_version("cudaMemcpyAsync_ptsz_v7000") == "cudaMemcpyAsync");
  CHECK(without_version("cuMemcpyHtoD_v2_ptds") == "cuMemcpyHtoD");
  CHECK(without_version("cuCtxCreate_v") == "cuCtxCreate_v");
}

TEST_CASE("CUPTI's own library and the stand-in have the same calls", "[cupti]") {
  const CuptiStandin standin;
  const CuptiLibrary real = CuptiLibrary::get();
  for (const auto domain : {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_DRIVER_API}) {
    const auto calls = known_calls(real, domain);
    CHECK(calls.giving_work.size() > 70);
    CHECK(calls.others.size() > 300);
    CHECK(calls.giving_work == known_calls(standin.library, domain).giving_work);
  }
}

TEST_CASE("Kernels, copies and memory sets are recorded with their calls, labels and streams",
          "[cupti]") {
  const CuptiStandin standin;
  const WorkReport report = report_of(recorded(standin, three_works()));
  CHECK(kernel_names(report) == all_three);
  CHECK_FALSE(report.lost.any());
  CHECK(report.lost.strays.empty());
  REQUIRE(report.parts.size() == 1);
  CHECK(report.parts[0].time.device.value == Approx(6e-6));
  // Until the first call ended, the device waited for the host; after that, for itself.
  CHECK(report.parts[0].time.launch.value == Approx(1e-6));
  CHECK(report.parts[0].time.waiting.value == Approx(1e-6));
}

TEST_CASE("Copies are named by their source and destination", "[cupti]") {
  const CuptiStandin standin;
  auto works = std::vector{
      work_by("cudaMemcpyPeerAsync", "", 1, 2, 3), work_by("cudaMemcpyAsync", "", 2, 3, 4),
      work_by("cudaMemcpyAsync", "", 3, 4, 5), work_by("cudaMemset", "", 4, 5, 6)};
  works[1].copy_kind = 2;
  works[2].copy_kind = 3;
  CHECK(kernel_names(report_of(recorded(standin, works))) ==
        std::vector<std::string>{"copy device to device", "copy device to host",
                                 "copy on the device", "set memory"});
}

TEST_CASE("Nothing is recorded before start and after stop", "[cupti]") {
  const CuptiStandin standin;
  const auto source = watch_by(standin.library);
  standin.hear(three_works().front());
  CHECK(recorded(standin, *source, {}).records.empty());
  standin.hear(three_works().front());
  CHECK(source->collect().records.empty());
}

TEST_CASE("Streams with the same number in two contexts are different streams", "[cupti]") {
  const CuptiStandin standin;
  auto works = three_works();
  works[0].stream = 3;
  works[2].stream = 4;
  works[2].device = 1;
  const Activity activity = recorded(standin, works);
  std::vector<StreamId> streams;
  for (const GpuRecord& record : activity.records)
    if (record.kind == RecordKind::Kernel)
      streams.push_back(stream_of(record));
  REQUIRE(streams.size() == 2);
  CHECK(streams[0].stream == streams[1].stream);
  CHECK((streams[0] != streams[1]));
}

TEST_CASE("Each error of CUPTI is reported with advice", "[cupti]") {
  const auto refused = [](const char* function, CUptiResult result) {
    return refusal(std::string("refuse=") + function + ":" + std::to_string(result));
  };
  CHECK(refused("cuptiActivityEnable", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)
            .find("lets only administrators watch the GPU") != std::string::npos);
  CHECK(refused("cuptiActivityEnable", CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES)
            .find("lets only administrators watch the GPU") != std::string::npos);
  CHECK(refused("cuptiActivityEnable", CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED) ==
        "CUPTI, recording kernels and copies: this virtual GPU cannot be watched");
  CHECK(refused("cuptiSubscribe_v2", CUPTI_ERROR_NOT_COMPATIBLE) ==
        "CUPTI, watching: this CUPTI is not compatible with the driver");
  for (const auto& [function, what] :
       std::map<const char*, std::string>{{"cuptiGetVersion", "its version"},
                                          {"cuptiSubscribe_v2", "watching"},
                                          {"cuptiActivitySetAttribute", "zeroed buffers"},
                                          {"cuptiActivityRegisterCallbacks", "its buffers"},
                                          {"cuptiGetTimestamp", "its clock"}})
    CHECK(refused(function, CUPTI_ERROR_UNKNOWN) ==
          "CUPTI, " + what + ": the stand-in was told to refuse it");
  // All of these failures leave CUPTI usable.
  CHECK(refusal("") == "no error");
}

TEST_CASE("An existing subscriber is named if CUPTI reports it", "[cupti]") {
  CHECK(refusal("watcher=Nsight").find("CUPTI: Nsight watches this process already") == 0);
  const CuptiStandin standin;
  const auto source = watch_by(standin.library);
  CHECK(test::error_of([&] {
          watch_by(standin.library);
        }).find("CUPTI: Pipewright watches this process already") == 0);
}

TEST_CASE("An older CUPTI of the same CUDA version is rejected, a newer one is accepted",
          "[cupti]") {
  CHECK((refusal("version=130000") == "no error") == (CUPTI_API_VERSION <= 130000));
  CHECK(refusal("version=120800").find("CUPTI 120800 was found, but ") == 0);
  CHECK(refusal("version=140000").find("CUPTI 140000 was found, but ") == 0);
  CHECK(refusal("version=" + std::to_string(CUPTI_API_VERSION + 1)) == "no error");
}

TEST_CASE("A CUPTI without subscriber names works as well", "[cupti]") {
  CuptiStandin standin;
  standin.library.subscribe_with_names = nullptr;
  CHECK(kernel_names(report_of(recorded(standin, three_works()))) == all_three);
  standin.behave("refuse=cuptiSubscribe:39");
  CHECK(test::error_of([&] {
          watch_by(standin.library);
        }).find("CUPTI, watching: another profiler watches this process already") == 0);
}

TEST_CASE("If calls cannot be selected, all are recorded", "[cupti]") {
  const CuptiStandin standin(
      "refuse=cuptiActivityEnableRuntimeApi:27 refuse=cuptiActivityEnableDriverApi:27");
  CHECK_FALSE(report_of(recorded(standin, three_works())).lost.any());
}

/// Makes a source whose CUPTI is first tried with a kernel.
std::unique_ptr<ActivitySource> tried(const CuptiStandin& standin) {
  return watch_by(standin.library, [&] { standin.hear(three_works().front()); });
}

TEST_CASE("Only calls that submit work are recorded", "[cupti]") {
  const CuptiStandin standin;
  const auto source = tried(standin);
  CHECK_FALSE(report_of(recorded(standin, *source, three_works())).lost.any());
  // A call of this name counts as one that submits no work.
  const auto other = {work_by("cudaEventRecord", "", 8, 9, 10)};
  CHECK(report_of(recorded(standin, *source, other)).lost.without_call == 1);
}

TEST_CASE("A CUPTI that does not record calls is detected", "[cupti]") {
  const CuptiStandin standin("no_calls");
  CHECK(test::error_of([&] {
          tried(standin);
        }).starts_with("CUPTI records the GPU's work, but not which calls submitted it"));
  standin.behave("");
  CHECK_FALSE(report_of(recorded(standin, *tried(standin), three_works())).lost.any());
}

TEST_CASE("Records of a newer CUPTI, longer or of unknown kinds, are read", "[cupti]") {
  for (const char* words : {"longer=8", "longer=24 newer", "newer"}) {
    INFO(words);
    const CuptiStandin standin(words);
    const WorkReport report = report_of(recorded(standin, three_works()));
    CHECK(kernel_names(report) == all_three);
    CHECK_FALSE(report.lost.any());
  }
}

TEST_CASE("Bytes that are not records and a truncated record are counted", "[cupti]") {
  {
    const CuptiStandin standin("garbage");
    const WorkReport report = report_of(recorded(standin, three_works()));
    CHECK(kernel_names(report) == all_three);
    CHECK(report.lost.unread == 64);
  }
  const CuptiStandin standin("cut");
  const WorkReport report = report_of(recorded(standin, three_works()));
  CHECK(report.kernels.size() == 2);
  CHECK(report.lost.unread == sizeof(CUpti_ActivityKernel10) - 4);
}

TEST_CASE("Records that CUPTI has dropped are counted", "[cupti]") {
  const CuptiStandin standin("drop=3");  // label, call and kernel of the first
  const WorkReport report = report_of(recorded(standin, three_works()));
  CHECK(report.lost.dropped == 3);
  CHECK(report.kernels.size() == 2);
}

TEST_CASE(
    "Records beyond the capacity of all buffers are dropped and counted, and the rest is read",
    "[cupti]") {
  const CuptiStandin standin("longer=65536");
  std::vector<PipewrightStandinWork> works;
  const std::size_t fitting = 64 * ((std::size_t{4} << 20U) / (65536 + 256));
  for (std::size_t work = 0; work < fitting; ++work)
    works.push_back(work_by("cudaLaunchKernel", "gemm", 1, 2, 3));
  const auto source = watch_by(standin.library);
  const Activity activity = recorded(standin, *source, works);
  CHECK(activity.dropped > 0);
  CHECK(activity.dropped + activity.records.size() == 3 * works.size());
  CHECK(activity.late_buffers == 56);
  // The next recording has all buffers again.
  CHECK(recorded(standin, *source, three_works()).dropped == 0);
}

TEST_CASE("Work whose call was lost is listed", "[cupti]") {
  const CuptiStandin standin("lose_calls=2");
  auto works = three_works();
  works.push_back(works[1]);
  const WorkReport report = report_of(recorded(standin, works));
  CHECK(report.lost.without_call == 2);
  REQUIRE(report.lost.strays.size() == 1);
  CHECK(report.lost.strays[0].name == "copy host to device");
  CHECK(report.lost.strays[0].call.empty());
  CHECK(report.lost.strays[0].count == 2);
  const auto json = to_json(report, [](int) { return std::string(); });
  CHECK(json["lost"]["unattributed"].dump() ==
        R"([{"name":"copy host to device","call":null,"count":2}])");
}

TEST_CASE("Work that was submitted between actions is listed with its call", "[cupti]") {
  const CuptiStandin standin;
  const auto source = watch_by(standin.library);
  source->start();
  standin.hear(work_by("cudaMemset", "", 20, 21, 22));
  source->stop();
  const WorkReport report = report_of(source->collect());
  CHECK(report.lost.unclaimed == 1);
  REQUIRE(report.lost.strays.size() == 1);
  CHECK(report.lost.strays[0].name == "set memory");
  CHECK(report.lost.strays[0].call == "cudaMemset");
}

TEST_CASE("Buffers that return late are reported as missing, and read when they return",
          "[cupti]") {
  const CuptiStandin standin("late");
  const auto source = watch_by(standin.library);
  source->start();
  source->open(1);
  for (const PipewrightStandinWork& work : three_works())
    standin.hear(work);
  source->close();
  // Its only flush requests the buffer, which is returned by the next one.
  const WorkReport first = report_of(source->collect());
  CHECK(first.kernels.empty());
  CHECK(first.lost.missing_buffers == 1);
  source->stop();
  CHECK(kernel_names(report_of(source->collect())) == all_three);
}

TEST_CASE("Buffers that never return are reported as missing, and not freed", "[cupti]") {
  const CuptiStandin standin("missing");
  const WorkReport report = report_of(recorded(standin, three_works()));
  CHECK(report.kernels.empty());
  CHECK(report.lost.missing_buffers == 1);
  CHECK(to_json(report, [](int) { return std::string(); })["lost"]["missing_buffers"] == 1);
}

/// Sets PIPEWRIGHT_KEEP_CUPTI in this process while it lives.
class KeptIn {
 public:
  explicit KeptIn(const std::string& folder) {
    ::setenv("PIPEWRIGHT_KEEP_CUPTI", folder.c_str(), /*overwrite=*/1);
  }
  ~KeptIn() { ::unsetenv("PIPEWRIGHT_KEEP_CUPTI"); }
  KeptIn(const KeptIn&) = delete;
  KeptIn& operator=(const KeptIn&) = delete;
};

/// Checks that a recording can be attributed completely. If it was too large for its folder, some
/// calls are missing.
void check_recording(const std::string& folder) {
  CAPTURE(folder);
  const auto told = nlohmann::json::parse(std::ifstream(folder + "/cupti.json"));
  std::vector<WorkRange> ranges;
  for (const auto& label : told.at("labels"))
    ranges.push_back({label.at("label"), 0, plan::parse_instruction("0F0").value(), -1,
                      label.at("begin_ns"), label.at("end_ns")});
  const CuptiStandin standin("play=" + folder);
  const auto source = watch_by(standin.library);
  int collections = 0;
  for (const auto& buffer : told.at("buffers"))
    collections = std::max<int>(collections, buffer.at("collection"));
  std::size_t labeled = 0;
  for (int collection = 0; collection < collections; ++collection) {
    const Activity activity = recorded(standin, *source, {});
    const Attribution found = attribute(activity, ranges);
    CHECK(activity.unread == 0);
    CHECK((found.without_call == 0 || told.at("left_out") > 0));
    CHECK(std::count(activity.names.begin(), activity.names.end(), "a kernel without a name") == 0);
    labeled += static_cast<std::size_t>(
        std::count_if(found.range_of.begin(), found.range_of.end(),
                      [](int range) { return range != Attribution::none; }));
  }
  CHECK(labeled > 0);
}

TEST_CASE("Recordings of CUPTI from a machine with a GPU replay with all calls and labels",
          "[cupti]") {
  const std::filesystem::path gpus = PIPEWRIGHT_TEST_DATA_DIR "/gpu";
  if (!std::filesystem::exists(gpus))
    test::skip("tests/data/gpu, which gpu-check's golden data are copied to, is not there yet");
  for (const auto& file : std::filesystem::recursive_directory_iterator(gpus))
    if (file.path().filename() == "cupti.json")
      check_recording(file.path().parent_path());
}

TEST_CASE("Stored buffers replay as the same records", "[cupti]") {
  const test::TempFolder folder;
  const std::string kept = folder.path() / "cupti";
  std::vector<Activity> before;
  {
    const CuptiStandin standin("longer=8");
    const KeptIn in(kept);
    const auto source = watch_by(standin.library);
    before.push_back(recorded(standin, *source, three_works()));
    before.push_back(recorded(standin, *source, {three_works().front()}));
  }
  check_recording(kept);
  const CuptiStandin standin("play=" + kept);
  const auto source = watch_by(standin.library);
  for (const Activity& activity : before) {
    const Activity again = recorded(standin, *source, {});
    CHECK((again.records == activity.records));
    CHECK(again.names == activity.names);
  }
  CHECK(recorded(standin, *source, {}).records.empty());
  const auto told = nlohmann::json::parse(std::ifstream(kept + "/cupti.json"));
  CHECK(told["cupti"] == CUPTI_API_VERSION);
  CHECK(told["left_out"] == 0);
  REQUIRE(told["labels"].size() == 2);
  CHECK(told["labels"][0]["label"] == 1);
  CHECK(told["labels"][0]["end_ns"] >= told["labels"][0]["begin_ns"]);
}

TEST_CASE("Stored buffers are small, contain whole records, and come from the first process only",
          "[cupti]") {
  const test::TempFolder folder;
  const std::string kept = folder.path() / "cupti";
  const CuptiStandin standin;
  const KeptIn in(kept);
  const std::vector<PipewrightStandinWork> many(2000, three_works().front());
  recorded(standin, many);
  const auto told = nlohmann::json::parse(std::ifstream(kept + "/cupti.json"));
  CHECK(told["left_out"] > 0);
  CHECK(std::filesystem::file_size(kept + "/1.buffer") <= std::size_t{192} << 10U);
  CHECK(std::filesystem::file_size(kept + "/1.buffer") > std::size_t{190} << 10U);
  recorded(standin, three_works());  // the folder is in use, so nothing is stored
  CHECK(nlohmann::json::parse(std::ifstream(kept + "/cupti.json")) == told);
  const CuptiStandin player("play=" + kept);
  const Activity again = recorded(player, {});
  CHECK(again.unread == 0);
  CHECK(again.records.size() == told["buffers"][0]["begins"].size());
}

TEST_CASE("A folder that cannot be created is reported before anything is recorded", "[cupti]") {
  const CuptiStandin standin;
  const KeptIn in("/nowhere/cupti");
  CHECK(test::error_of([&] {
          watch_by(standin.library);
        }).find("PIPEWRIGHT_KEEP_CUPTI=/nowhere/cupti: the folder cannot be created: ") == 0);
}

}  // namespace standin_test
