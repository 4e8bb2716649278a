// Keys of this project's files that have another name than in the previous version.

#include <iostream>
#include <sstream>

#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace renamed_keys_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

/// Collects what is written to std::clog while it exists.
class ClogText {
 public:
  ClogText() : before_(std::clog.rdbuf(text_.rdbuf())) {}
  ~ClogText() { std::clog.rdbuf(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

TEST_CASE("Old keys of a file are read under their current names, and a line says so once",
          "[plan][json]") {
  const std::string old = R"({"format": "pipewright/cluster/1",
 "between_nodes": {"sum_latency_s": 1, "latency_s": 2},
 "machine": {"constants": {"hop_efficiency": 0.5}}})";
  const ClogText clog;
  JsonDocument document = JsonDocument::parse(old, "old-cluster.json");
  CHECK(document.root() == Json::parse(R"({"format": "pipewright/cluster/1",
 "between_nodes": {"collective_latency_s": 1, "latency_s": 2},
 "machine": {"constants": {"transfer_efficiency": 0.5}}})"));
  CHECK(document.position("/machine/constants/transfer_efficiency") == "old-cluster.json:3:28");
  JsonDocument::parse(old, "old-cluster.json");
  CHECK(clog.text() ==
        "old-cluster.json: old names of keys: \"sum_latency_s\" is now \"collective_latency_s\", "
        "\"hop_efficiency\" is now \"transfer_efficiency\". Rename them; the next version no "
        "longer reads them.\n");

  document.set("machine.constants.hop_efficiency=0.25");
  CHECK(document.root()["machine"]["constants"] == Json{{"transfer_efficiency", 0.25}});
}

TEST_CASE("A key under its old and its current name is given twice", "[plan][json]") {
  CHECK(
      error_of([] {
        JsonDocument::parse(
            R"({"format": "pipewright/scenario/1", "hand_over": "copy", "local_transfer": "copy"})",
            "s.json");
      }) == "s.json:1:58: /local_transfer: this key occurs twice");
}

TEST_CASE("Other programs' files keep their keys", "[plan][json]") {
  const ClogText clog;
  const std::string text = R"({"longest": 3, "format": "mystery", "products": []})";
  CHECK(JsonDocument::parse(text, "config.json").root() == Json::parse(text));
  CHECK(clog.text().empty());
}

}  // namespace renamed_keys_test
