// A module exported by PyTorch becomes a folder, from which all commands know its layers.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"
#include "support/exported_archive.hpp"

namespace import_command_test {

using namespace pipewright;
using test::run_program;
using test::TempFolder;
using Words = std::vector<std::string>;

std::vector<std::string> names_in(const nlohmann::json& layers) {
  std::vector<std::string> names;
  for (const auto& layer : layers)
    names.push_back(layer.at("name"));
  return names;
}

TEST_CASE("import writes a folder whose layers can be partitioned and used in scenarios",
          "[cli][import]") {
  const TempFolder folder;
  const auto archive = (folder.path() / "exported.pt2").string();
  plan::write_file(archive, test::ExportedArchive().bytes());
  const auto out = (folder.path() / "small").string();
  const auto imported = run_program({"import", archive, "-o", out, "--json"});
  CAPTURE(imported.err);
  REQUIRE(imported.exit_code == 0);
  const auto json = nlohmann::json::parse(imported.out);
  const Words names{"model.embed", "model.blocks.0", "model.blocks.1", "model.head"};
  CHECK(names_in(json.at("layers")) == names);
  CHECK(json.at("layers").at(1).at("parameters") == 4 * 4 + 4 + 4 + 4);
  CHECK(json.at("layers").at(1).at("forward_flops") == 2 * 4 * 4);
  CHECK(json.at("microbatch_size") == 3);

  const auto written = plan::JsonDocument::read(out + "/layers.json").root();
  CHECK(names_in(written.at("layers")) == names);
  CHECK(std::filesystem::exists(out + "/model.pt2"));
  const auto scenario = out + "/scenario.json";
  // The scenario is read from another folder than its own.
  const auto exported = run_program(
      {"export", scenario, "--for", "deepspeed", "--set", "pipeline.partition=[0,2,4]", "--json"});
  CAPTURE(exported.err, exported.out);
  CHECK(exported.exit_code == 0);

  // Layers are split again; an existing scenario stays.
  plan::write_file(scenario, plan::JsonDocument::read(scenario).root().dump());
  const auto before = plan::read_file(scenario);
  REQUIRE(run_program({"import", archive, "-o", out, "--by", "marks"}).exit_code == 0);
  CHECK(plan::JsonDocument::read(out + "/layers.json").root().at("layers").size() == 2);
  CHECK(plan::read_file(scenario) == before);
}

TEST_CASE("import prints a row for each layer", "[cli][import]") {
  const TempFolder folder;
  const auto archive = (folder.path() / "exported.pt2").string();
  plan::write_file(archive, test::ExportedArchive().bytes());
  const auto result = run_program({"import", archive, "--before", "model.blocks.1"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.find("model.blocks.1          8            52       8e-08            72  "
                        "model.embed.weight") != std::string::npos);
  CHECK(result.out.find("2 layers, 3 samples in a microbatch") != std::string::npos);
  CHECK(result.out.find("The loss takes 1 operators.") != std::string::npos);
}

TEST_CASE("import and scenarios of imported models report errors", "[cli][import]") {
  const TempFolder folder;
  const auto archive = (folder.path() / "exported.pt2").string();
  const auto missing = run_program({"import", archive});
  CHECK(missing.exit_code == 2);
  CHECK(missing.err.find("exported.pt2: cannot be read: No such file") != std::string::npos);
  plan::write_file(archive, test::ExportedArchive().bytes());
  const auto out = (folder.path() / "small").string();
  REQUIRE(run_program({"import", archive, "-o", out}).exit_code == 0);
  auto layers = plan::JsonDocument::read(out + "/layers.json").root();
  layers["layers"][1]["last"] = "nobody";
  plan::write_file(out + "/layers.json", layers.dump());
  const auto unknown = run_program({"simulate", out + "/scenario.json", "--costs", "none"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("layers.json: layer model.blocks.0: no operator of the graph is called "
                         "\"nobody\"") != std::string::npos);
  std::filesystem::remove(out + "/layers.json");
  const auto gone = run_program({"simulate", out + "/scenario.json", "--costs", "none"});
  CHECK(gone.exit_code == 2);
  CHECK(gone.err.find("layers.json: cannot be read: No such file") != std::string::npos);
}

}  // namespace import_command_test
