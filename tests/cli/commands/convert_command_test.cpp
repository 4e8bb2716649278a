#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/event_file.hpp"
#include "pipewright/plan/timeline/trace.hpp"
#include "support/catch.hpp"

namespace convert_command_test {

using namespace pipewright;
using test::run_program;
using test::TempFolder;

/// Predicts the shipped example and writes the timeline to this file.
void predict(const std::filesystem::path& file) {
  const std::string folder = PIPEWRIGHT_SOURCE_DIR "/scenarios/shared-card/";
  const auto result = run_program({"simulate", folder + "scenario.json", "--costs",
                                   folder + "costs.json", "--trace", file.string()});
  REQUIRE(result.err == "");
  REQUIRE(result.exit_code == 0);
}

std::string torch_trace(int rank) {
  return R"({"distributedInfo":{"rank":)" + std::to_string(rank) +
         R"(},"traceEvents":[{"ph":"X","cat":"user_annotation","name":"PP:)" +
         std::to_string(rank) + R"(F0","pid":1,"tid":1,"ts":)" + std::to_string(rank) +
         R"(,"dur":1}]})";
}

TEST_CASE("simulate --trace writes equal contents as a native file and as a trace",
          "[cli][convert]") {
  const TempFolder folder;
  const auto native = folder.path() / "t.pwt", trace = folder.path() / "t.json";
  predict(native);
  predict(trace);
  const auto expected = plan::table_of(plan::timeline_from_trace(plan::JsonDocument::read(trace)));
  CHECK(plan::timeline_of(plan::read_event_file(native)) == plan::timeline_of(expected));
  CHECK(std::filesystem::file_size(native) < std::filesystem::file_size(trace) / 2);
}

TEST_CASE("compare reads every format of a timeline", "[cli][convert]") {
  const TempFolder folder;
  const auto native = (folder.path() / "t.pwt").string();
  predict(native);
  for (const char* name : {"o.json", "o.json.gz", "o.pwt"}) {
    const auto other = (folder.path() / name).string();
    const auto converted = run_program({"convert", native, other});
    CHECK(converted.exit_code == 0);
    CHECK(converted.out.find(" of 4 ranks, ") != std::string::npos);
    const auto compared = run_program({"compare", native, other, "--json"});
    REQUIRE(compared.exit_code == 0);
    CHECK(nlohmann::json::parse(compared.out)["error_percent"]["iteration_s"] == 0);
  }
}

TEST_CASE("convert merges the traces of a run", "[cli][convert]") {
  const TempFolder folder;
  const auto a = folder.write("a.json", torch_trace(0)), b = folder.write("b.json", torch_trace(1));
  const auto out = (folder.path() / "run.pwt").string();
  const auto result = run_program({"convert", b.string(), a.string(), out, "--json"});
  REQUIRE(result.exit_code == 0);
  const auto answer = nlohmann::json::parse(result.out);
  CHECK(answer["ranks"] == 2);
  CHECK(answer["problems"].empty());
  const auto csv = (folder.path() / "run.csv").string(), svg = (folder.path() / "run.svg").string();
  CHECK(run_program({"convert", out, csv}).exit_code == 0);
  CHECK(test::text_of(csv).find("\n1,pipeline,0,1F0,") != std::string::npos);
  CHECK(run_program({"convert", out, svg}).exit_code == 0);
  CHECK(test::text_of(svg).find("</svg>") != std::string::npos);
}

TEST_CASE("convert reports errors, and keeps everything that can be read", "[cli][convert]") {
  const TempFolder folder;
  const auto out = (folder.path() / "o.csv").string();
  const auto cut = folder.write("cut.json", torch_trace(0).substr(0, 126) + ",{\"ph\"");
  const auto result = run_program({"convert", cut.string(), out});
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("the file is cut off") != std::string::npos);
  const auto text = folder.write("x.txt", "hello");
  CHECK(run_program({"convert", text.string(), out}).exit_code == 2);
  CHECK(run_program({"convert", text.string()}).exit_code == 2);
  CHECK(run_program({"convert", cut.string(), out + ".png"}).err.find(".json.gz, .csv or .svg") !=
        std::string::npos);
  CHECK(run_program({"convert", "--help"}).out.find("Example") != std::string::npos);
}

}  // namespace convert_command_test
