// Megatron-LM's .idx: an accepted index consists of consecutive documents up to the last token.

#include <string_view>

#include "data/token_index.hpp"
#include "promise.hpp"
#include "reader.hpp"

namespace token_index_fuzz {

using namespace pipewright::exec;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;

void try_text(std::string_view text) {
  const auto index = accepted([&] { return parse_token_index(text, "tokens.idx"); });
  if (!index)
    return;
  demand(index->tokens >= 0, "the number of tokens is not negative");
  std::int64_t last = 0;
  for (const std::int64_t end : index->ends) {
    demand(end >= last, "documents follow each other");
    last = end;
  }
  demand(index->ends.empty() || last == index->tokens, "the last document ends with the file");
}

const pipewright::fuzz::Reader reader("token_index", try_text);

}  // namespace token_index_fuzz
