// JSON documents and assignments of the command line: an accepted document can be written, and
// every value has a position.

#include <string>
#include <string_view>

#include "json_text.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "reader.hpp"

namespace document_fuzz {

using namespace pipewright::plan;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;
using pipewright::fuzz::document_of;

void try_text(std::string_view text) {
  const auto document = accepted([&] { return document_of(text); });
  if (!document)
    return;
  const std::string written = document->root().dump();
  demand(JsonDocument::parse(written, "again").root() == document->root(), "reads back as written");
  const Json leaves = document->root().flatten();  // pointer → value
  for (const auto& leaf : leaves.items()) {
    const std::string place = document->position(leaf.key());
    demand(place.starts_with("fuzz:") || place.starts_with("--set "), "every value has a position");
  }
}

const pipewright::fuzz::Reader reader("document", try_text);

}  // namespace document_fuzz
