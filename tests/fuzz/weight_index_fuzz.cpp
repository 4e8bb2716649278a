// The index of a folder of weights: it only names files in that folder.

#include <string>
#include <string_view>

#include "json_text.hpp"
#include "pipewright/exec/checkpoint/weight_folder.hpp"
#include "promise.hpp"
#include "reader.hpp"

namespace weight_index_fuzz {

using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;
using pipewright::fuzz::document_of;

void try_text(std::string_view text) {
  const auto files =
      accepted([&] { return pipewright::exec::parse_weight_index(document_of(text)); });
  if (!files)
    return;
  for (const auto& [tensor, file] : *files) {
    demand(!file.empty() && file != "." && file != "..", "a file has a name");
    demand(file.find('/') == std::string::npos, "the file is in the folder");
  }
}

const pipewright::fuzz::Reader reader("weight_index", try_text);

}  // namespace weight_index_fuzz
