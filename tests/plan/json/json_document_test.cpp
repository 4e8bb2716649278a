#include "pipewright/plan/json/json_document.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace json_document_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

struct Plan {
  int ranks = 0;
  std::string schedule;
  Seconds pause;
  std::vector<int> sizes;
};

Plan read_plan(JsonObject& root) {
  return {.ranks = root.integer("ranks", at_least(1)),
          .schedule = root.choice("schedule", {"gpipe", "1f1b"}, "gpipe"),
          .pause = root.seconds("pause_s", Seconds{}),
          .sizes = root.integers("sizes", at_least(1), std::vector<int>{})};
}

Plan plan_of(const JsonDocument& document) {
  return read_document<Plan>(document, "test/plan/1", read_plan);
}

Plan plan_of(const std::string& text) { return plan_of(JsonDocument::parse(text, "plan.json")); }

std::string error_in(const std::string& text) {
  return error_of([&] { plan_of(text); });
}

std::string parse_error(const std::string& text) {
  return error_of([&] { JsonDocument::parse(text, "plan.json"); });
}

std::string error_with_set(const std::string& assignment) {
  return error_of([&] {
    auto document = JsonDocument::parse("{\"format\": \"test/plan/1\", \"ranks\": 2}", "plan.json");
    document.set(assignment);
    plan_of(document);
  });
}

TEST_CASE("A valid document gives its values and defaults", "[plan][json]") {
  const Plan plan = plan_of(R"({"$schema": "x", "format": "test/plan/1", "ranks": 3})");
  CHECK(plan.ranks == 3);
  CHECK(plan.schedule == "gpipe");
  CHECK(plan.sizes.empty());
}

TEST_CASE("An unknown key is named with line, column and the key that was meant", "[plan][json]") {
  CHECK(
      error_in("{\n  \"format\": \"test/plan/1\",\n  \"ranks\": 2,\n  \"shedule\": \"1f1b\"\n}") ==
      "plan.json:4:3: /shedule: unknown key \"shedule\", did you mean \"schedule\"?");
}

TEST_CASE("A wrong type is reported with the value found instead", "[plan][json]") {
  CHECK(error_in(R"({"format": "test/plan/1", "ranks": "two"})") ==
        "plan.json:1:27: /ranks: a whole number is needed here, not the text \"two\"");
  CHECK(error_in(R"({"format": "test/plan/1", "ranks": 2.5})") ==
        "plan.json:1:27: /ranks: a whole number is needed here, not 2.5");
  CHECK(error_in(R"({"format": "test/plan/1", "ranks": 2, "sizes": {}})") ==
        "plan.json:1:39: /sizes: a list is needed here, not an object");
  CHECK(error_in("[]") == "plan.json:1:1: /: an object is needed here, not a list");
}

TEST_CASE("A missing key is reported at the start of its object", "[plan][json]") {
  CHECK(error_in(R"({"format": "test/plan/1"})") == "plan.json:1:1: /: \"ranks\" is missing");
}

TEST_CASE("A number out of range is reported with the rule only", "[plan][json]") {
  CHECK(error_in(R"({"format": "test/plan/1", "ranks": 0})") ==
        "plan.json:1:27: /ranks: 0 is not possible: it must be at least 1");
  CHECK(error_in(R"({"format": "test/plan/1", "ranks": 2, "pause_s": -0.5})") ==
        "plan.json:1:39: /pause_s: -0.5 is not possible: it must be at least 0");
  CHECK(error_in(R"({"format": "test/plan/1", "ranks": 2, "sizes": [1, 0]})") ==
        "plan.json:1:52: /sizes/1: 0 is not possible: it must be at least 1");
}

TEST_CASE("A number too large for its type is rejected, not wrapped", "[plan][json]") {
  CHECK(error_in(R"({"format": "test/plan/1", "ranks": 3000000000})") ==
        "plan.json:1:27: /ranks: 3000000000 is too large");
  CHECK(error_in(R"({"format": "test/plan/1", "ranks": 18446744073709551615})") ==
        "plan.json:1:27: /ranks: 18446744073709551615 is too large");
  CHECK(error_in(R"({"format": "test/plan/1", "ranks": 2, "sizes": [18446744073709551615]})") ==
        "plan.json:1:49: /sizes/0: 18446744073709551615 is too large or too small");
  CHECK(parse_error(R"({"ranks": 1e999})") ==
        "plan.json:1:1: /: not usable: number overflow parsing '1e999'");
}

TEST_CASE("All errors of a document are reported together", "[plan][json]") {
  CHECK(error_in("{\"format\": \"test/plan/2\",\n \"schedule\": \"1f1\",\n \"paus_s\": 1}") ==
        "plan.json:1:2: /format: \"test/plan/2\" is not known here, did you mean \"test/plan/1\"? "
        "(possible: test/plan/1)\n"
        "plan.json:1:1: /: \"ranks\" is missing\n"
        "plan.json:2:2: /schedule: \"1f1\" is not known here, did you mean \"1f1b\"? "
        "(possible: gpipe or 1f1b)\n"
        "plan.json:3:2: /paus_s: unknown key \"paus_s\", did you mean \"pause_s\"?");
}

TEST_CASE("For a document full of errors, a thousand are listed and the rest counted",
          "[plan][json]") {
  std::string sizes;
  for (int i = 0; i < 1500; ++i)
    sizes += i == 0 ? "null" : ", null";
  const std::string error =
      error_in(R"({"format": "test/plan/1", "ranks": 3, "sizes": [)" + sizes + "]}");
  CHECK(std::count(error.begin(), error.end(), '\n') == 1000);
  CHECK(error.ends_with("\n… and 500 more"));
}

TEST_CASE("A duplicate key is rejected, because one of its values would be lost", "[plan][json]") {
  CHECK(parse_error("{\"ranks\": 1,\n\"ranks\": 2}") ==
        "plan.json:2:1: /ranks: this key occurs twice");
}

TEST_CASE("A syntax error is reported with its position", "[plan][json]") {
  const std::string message = parse_error("{\n  \"ranks\": 2,\n}");
  CHECK(message ==
        "plan.json:3:1: /: not JSON: syntax error while parsing object key - unexpected '}'; "
        "expected string literal");
  CHECK(parse_error(std::string(1000, '[')) ==
        "plan.json:1:1: /: nested more than 200 levels deep");
}

TEST_CASE("Numbers that only Python writes are read as texts", "[plan][json]") {
  const auto read = [](const std::string& text) { return JsonDocument::parse(text, "a.json"); };
  const auto document =
      read("{\"limit\": [0.0, Infinity],\n\"low\": -Infinity, \"a \\\" NaN\": NaN, \"x\": 1}");
  CHECK(document.root() == Json::parse(R"({"limit": [0.0, "Infinity"], "low": "-Infinity",
                                           "a \" NaN": "NaN", "x": 1})"));
  CHECK(document.position("/x") == "a.json:2:36");
  const auto refusal = [&](const std::string& text) {
    return error_of([&] { read(text); }).substr(0, std::string("a.json:1:21: /: not JSON").size());
  };
  CHECK(refusal("{\"a\": NaN, \"b\":    }") == "a.json:1:20: /: not JSON");
  CHECK(refusal("{\"a\": NaN1,          }") == "a.json:1:10: /: not JSON");
  CHECK(refusal("{\"a\": +Infinity       }") == "a.json:1:7: /: not JSON:");
  CHECK(refusal("{NaN: 1}") == "a.json:1:2: /: not JSON:");
  CHECK(refusal("{-Infinity : NaN}") == "a.json:1:3: /: not JSON:");
}

TEST_CASE("--set replaces a value", "[plan][json]") {
  auto document = JsonDocument::parse(R"({"format": "test/plan/1", "ranks": 2})", "plan.json");
  document.set("ranks=5");
  document.set("schedule=1f1b");
  const Plan plan = plan_of(document);
  CHECK(plan.ranks == 5);
  CHECK(plan.schedule == "1f1b");
}

TEST_CASE("--set changes an element of a list by its index", "[plan][json]") {
  auto document = JsonDocument::parse(R"({"levels": [{"of": 1}, {"of": 2}]})", "plan.json");
  document.set("levels.1.of=3");
  CHECK(document.root().dump() == R"({"levels":[{"of":1},{"of":3}]})");
  for (const char* const place : {"2", "-1", "leaf", "1x", ""})
    CHECK(error_of([&] { document.set(fmt::format("levels.{}.of=3", place)); }) ==
          fmt::format(
              "--set levels.{0}.of=3: /levels is a list of 2, and \"{0}\" is not an index of it",
              place));
}

TEST_CASE("Errors of --set name the assignment instead of the file", "[plan][json]") {
  CHECK(error_with_set("rank=4") ==
        "--set rank=4: /rank: unknown key \"rank\", did you mean \"ranks\"?");
  CHECK(error_with_set("ranks=0") ==
        "--set ranks=0: /ranks: 0 is not possible: it must be at least 1");
  CHECK(error_with_set("ranks") == "--set ranks: write it as path=value, such as pipeline.ranks=4");
  CHECK(error_with_set("ranks.first=1") ==
        "--set ranks.first=1: /ranks holds 2, it has no field \"first\"");
}

TEST_CASE("--set rejects values that could not be written again", "[plan][json]") {
  CHECK(error_with_set("schedule=\xff") == "--set schedule=\xff: this is not UTF-8");
  CHECK(error_with_set("\xc3=1") == "--set \xc3=1: this is not UTF-8");
  auto document = JsonDocument::parse("{}", "plan.json");
  document.set("schedule=\u00fc");
  CHECK(document.root().dump() == "{\"schedule\":\"\u00fc\"}");
}

TEST_CASE("--set nests no deeper than a file can", "[plan][json]") {
  CHECK(error_of([] {
          auto document = JsonDocument::parse("{}", "plan.json");
          document.set("a=" + std::string(201, '[') + std::string(201, ']'));
        }).ends_with("nested more than 200 levels deep"));
  CHECK(error_of([] {
          auto document = JsonDocument::parse("{}", "plan.json");
          std::string path = "a";
          for (int level = 0; level < 200; ++level)
            path += ".a";
          document.set(path + "=1");
        }).ends_with("nested more than 200 levels deep"));
}

TEST_CASE("A value replaced by --set is no longer attributed to the file", "[plan][json]") {
  auto document = JsonDocument::parse(R"({"sizes": [1, 2]})", "plan.json");
  CHECK(document.position("/sizes/1") == "plan.json:1:15");
  document.set("sizes=[3, 4]");
  CHECK(document.position("/sizes/1") == "--set sizes=[3, 4]");
}

TEST_CASE("An error message of several lines has the position on each line", "[plan][json]") {
  const auto document = JsonDocument::parse(R"({"sizes": [1, 2]})", "plan.json");
  Diagnostics diagnostics(document);
  diagnostics.add_lines("/sizes", "too few\ntoo small");
  CHECK(error_of([&] { diagnostics.throw_if_any(); }) ==
        "plan.json:1:2: /sizes: too few\nplan.json:1:2: /sizes: too small");
}

TEST_CASE("A file that cannot be read is named", "[plan][json]") {
  CHECK(error_of([] { JsonDocument::read("/nowhere/plan.json"); }) ==
        "/nowhere/plan.json: cannot be read: No such file or directory");
  const std::string folder = std::filesystem::temp_directory_path().string();
  CHECK(error_of([&] { JsonDocument::read(folder); }) ==
        folder + ": is a directory, a file is needed");
}

TEST_CASE("A file is replaced atomically and no temporary file remains", "[plan][json]") {
  const auto folder = std::filesystem::temp_directory_path() / "pipewright-json-document-test";
  std::filesystem::create_directories(folder);
  write_file(folder / "a.json", "{\"old\": 1}");
  write_file(folder / "a.json", "{}");
  CHECK(JsonDocument::read(folder / "a.json").root() == Json::object());
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  std::filesystem::remove_all(folder);
}

TEST_CASE("A link stays a link, a file keeps its permissions, a device stays a device",
          "[plan][json]") {
  namespace fs = std::filesystem;
  const auto folder = fs::temp_directory_path() / "pipewright-json-document-links";
  fs::create_directories(folder);
  write_file(folder / "a.json", "1");
  fs::permissions(folder / "a.json", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("a.json", folder / "link.json");
  write_file(folder / "link.json", "2");
  CHECK(fs::is_symlink(folder / "link.json"));
  CHECK(JsonDocument::read(folder / "a.json").root() == 2);
  CHECK(fs::status(folder / "a.json").permissions() ==
        (fs::perms::owner_read | fs::perms::owner_write));
  fs::remove_all(folder);

  // Uses no file in /dev, which a failing test would delete if it runs as root.
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  write_file(fmt::format("/proc/self/fd/{}", ends[1]), "3");
  char letter = 0;
  CHECK(read(ends[0], &letter, 1) == 1);
  CHECK(letter == '3');
  close(ends[0]);
  close(ends[1]);
}

}  // namespace json_document_test
