#include "pipewright/profiler/activity/work_report.hpp"

#include <nlohmann/json.hpp>

#include "pipewright/plan/timeline/event_file.hpp"
#include "pipewright/profiler/activity/kernel_table.hpp"
#include "profiler/support/made_up_activity.hpp"
#include "support/catch.hpp"
#include "support/temp_folder.hpp"

namespace work_report_test {

using namespace pipewright;
using namespace pipewright::profiler;
using test::SyntheticData;

std::string layer_name(int layer) { return layer < 0 ? "" : "layer " + std::to_string(layer); }

/// Makes a pass of two layers, of which the second waits for the host.
SyntheticData two_layers(double slower = 1) {
  SyntheticData made;
  const auto load = made.range("0LOAD0", 0, 4);
  const auto first = made.range("0F0", 4, 10, 0, 0), second = made.range("0F0", 10, 100, 0, 1);
  made.kernel("copy to the device", load, 2, 3, 4, 7, 4096);
  made.kernel("gemm", first, 5, 6, 6 + 30 * slower);
  made.kernel("gemm", first, 6, 40, 70);
  made.kernel("softmax", second, 90, 91, 93);
  return made;
}

TEST_CASE("The report sums each layer's parts, and kernels by name", "[activity]") {
  const WorkReport report = work_report({two_layers().pass, two_layers().pass});
  REQUIRE(report.parts.size() == 3);
  const WorkPart& first = report.parts[1];
  CHECK(first.layer == 0);
  CHECK(first.kind == plan::InstructionKind::Forward);
  CHECK(first.times == 2);
  CHECK(first.time.device.value == Approx(60e-6));
  CHECK_FALSE(first.time.is_launch_bound());
  REQUIRE(first.kernels.size() == 1);
  CHECK(first.kernels[0].name == "gemm");
  CHECK(first.kernels[0].count == 2);
  CHECK(first.kernels[0].time.value == Approx(60e-6));
  CHECK_FALSE(first.kernels[0].moved);
  CHECK(report.parts[2].time.is_launch_bound());

  REQUIRE(report.kernels.size() == 3);
  CHECK(report.kernels[0].name == "gemm");
  CHECK(report.kernels[2].name == "copy to the device");
  CHECK(report.kernels[2].moved == plan::Bytes{4096});
  CHECK_FALSE(report.lost.any());
}

TEST_CASE("Lost records are reported, and the rest still counts", "[activity]") {
  SyntheticData made = two_layers();
  made.pass.activity.dropped = 5;
  made.pass.activity.unread = 40;
  made.pass.activity.records.resize(made.pass.activity.records.size() - 1);
  const WorkReport report = work_report({made.pass});
  CHECK(report.lost.any());
  CHECK(report.lost.dropped == 5);
  CHECK(report.lost.unread == 40);
  CHECK(report.parts[1].time.device.value == Approx(60e-6));
  CHECK(report.parts[2].time.count == 0);
}

TEST_CASE("The report is also available as JSON", "[activity]") {
  WorkReport report = work_report({two_layers().pass});
  report.source = "CUPTI";
  report.on_device = true;
  report.overhead = 0.004;
  const plan::Json json = to_json(report, layer_name);
  CHECK(json["parts"][2]["layer"] == "layer 1");
  CHECK(json["parts"][2]["part"] == "F");
  CHECK(json["parts"][2]["launch_bound"] == true);
  CHECK(json["parts"][1]["kernels"][0]["count"] == 2);
  CHECK(json["parts"][1]["kernels"][0]["moved_bytes"].is_null());
  CHECK(json["kernels"][2]["moved_bytes"] == 4096);
  CHECK(json["lost"]["dropped"] == 0);
  CHECK(json["overhead"] == 0.004);
}

/// Returns a line for each track with its depth: "pipeline 0: 0LOAD0 0F0".
std::string tracks(const plan::EventTable& table) {
  std::string text;
  for (const plan::EventTrack& track : table.tracks) {
    text += track.name + " " + std::to_string(track.depth) + ":";
    for (auto event = track.begin; event < track.end; ++event)
      text += " " + table.name_at(event);
    text += "\n";
  }
  return text;
}

TEST_CASE("Kernels are shown below the layers and actions that launched them", "[activity]") {
  const plan::EventTable table = kernel_table(two_layers().pass, layer_name);
  CHECK(tracks(table) ==
        "pipeline 0: 0LOAD0 0F0\n"
        "pipeline inside 1: copy to the device layer 0 layer 1\n"
        "pipeline inside 2: gemm gemm softmax\n"
        "host 0: 0LOAD0 0F0\n");
  const test::TempFolder folder;
  plan::write_event_file(folder.path() / "kernels.pwt", table);
  CHECK(tracks(plan::read_event_file(folder.path() / "kernels.pwt")) == tracks(table));
}

TEST_CASE("Other streams, transfers and unattributed work have separate tracks", "[activity]") {
  SyntheticData made;
  const auto f = made.range("0F0", 0, 10, 0), send = made.range("0SEND_F0", 10, 12, 0);
  const auto receive = made.range("1RECV_F0", 0, 5, 1), g = made.range("1F0", 5, 12, 1);
  made.kernel("gemm", f, 1, 2, 20, 7);
  made.kernel("beside", f, 1, 5, 9, 11);
  made.kernel("ncclSend", send, 11, 21, 25, 12);
  made.kernel("ncclRecv", receive, 2, 3, 26, 13);
  made.kernel("gemm", g, 8, 27, 40, 14);
  made.kernel("stray", 0, 90, 91, 95, 50);
  const plan::EventTable table = kernel_table(made.pass, layer_name);
  CHECK(tracks(table) ==
        "pipeline 0: 0F0\n"
        "pipeline inside 1: gemm\n"
        "stream 11 0: beside\n"
        "unclaimed on stream 50 0: stray\n"
        "host 0: 0F0 0SEND_F0\n"
        "pipeline send 0: 0SEND_F0\n"
        "pipeline send inside 1: ncclSend\n"
        "pipeline 0: 1F0\n"
        "pipeline inside 1: gemm\n"
        "host 0: 1RECV_F0 1F0\n"
        "pipeline receive 0: 1RECV_F0\n"
        "pipeline receive inside 1: ncclRecv\n");
  const test::TempFolder folder;
  plan::write_event_file(folder.path() / "kernels.pwt", table);  // rejects an invalid table
}

TEST_CASE("Streams with one number in two contexts have separate tracks that name the context",
          "[activity]") {
  SyntheticData made;
  const auto f = made.range("0F0", 0, 10, 0);
  made.in_context(2);
  made.kernel("gemm", f, 1, 2, 20, 7);
  made.in_context(3);
  made.kernel("beside", f, 1, 5, 9, 7);
  made.kernel("stray", 0, 90, 91, 95, 7);
  CHECK(tracks(kernel_table(made.pass, layer_name)) ==
        "pipeline 0: 0F0\n"
        "pipeline inside 1: gemm\n"
        "stream 7 of context 3 0: beside\n"
        "unclaimed on stream 7 of context 3 0: stray\n"
        "host 0: 0F0\n");
}

TEST_CASE("Overlapping kernels stay unchanged", "[activity]") {
  SyntheticData made;
  const auto f = made.range("0F0", 0, 10, 0);
  made.kernel("a", f, 1, 2, 20);
  made.kernel("begins before a ends", f, 2, 19, 30);
  const plan::EventTable table = kernel_table(made.pass, layer_name);
  CHECK(tracks(table) ==
        "pipeline 0: 0F0\n"
        "pipeline inside 1: a\n"
        "pipeline 0: begins before a ends\n"
        "host 0: 0F0\n");
}

}  // namespace work_report_test
