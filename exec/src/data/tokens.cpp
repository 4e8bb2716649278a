#include "pipewright/exec/data/tokens.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "packed.hpp"
#include "pipewright/plan/error.hpp"
#include "token_file.hpp"
#include "windows.hpp"

namespace pipewright::exec {
namespace {

/// Returns the positions after each token that ends a document.
std::vector<std::int64_t> ends_behind(const at::Tensor& tokens, int document_end) {
  constexpr std::int64_t at_once = 1 << 20;
  std::vector<std::int64_t> ends;
  for (std::int64_t first = 0; first < tokens.numel(); first += at_once) {
    const at::Tensor some =
        tokens.narrow(0, first, std::min(at_once, tokens.numel() - first)).to(at::kLong);
    const at::Tensor places = (some == document_end).nonzero().flatten();
    for (std::int64_t p = 0; p < places.numel(); ++p)
      ends.push_back(first + places[p].item<std::int64_t>() + 1);
  }
  if (ends.empty() || ends.back() < tokens.numel())
    ends.push_back(tokens.numel());
  return ends;
}

std::unique_ptr<Dataset> packed(const std::filesystem::path& file, TokenFile tokens, int sequence,
                                const BatchShape& shape) {
  if (shape.document_end >= 0)
    tokens.ends = ends_behind(tokens.tokens, shape.document_end);
  if (tokens.ends.empty())
    throw plan::InputError(
        fmt::format("{}: the ends of its documents are unknown. Set data.document_end to the token "
                    "that ends a document, or put an .idx file next to it",
                    file.string()));
  auto made = std::make_unique<Packed>(tokens.tokens, tokens.ends, sequence, shape);
  if (made->sample_count() == 0)
    throw plan::InputError(fmt::format("{}: none of its {} documents has two tokens", file.string(),
                                       tokens.ends.size()));
  return made;
}

}  // namespace

std::unique_ptr<Dataset> open_tokens(const std::filesystem::path& file, int sequence,
                                     int vocabulary, const BatchShape& shape) {
  TokenFile tokens = map_tokens(file, vocabulary);
  if (shape.order == plan::SampleOrder::Packed)
    return packed(file, std::move(tokens), sequence, shape);
  if (tokens.tokens.numel() <= sequence)
    throw plan::InputError(
        fmt::format("{}: its {} tokens of {} bytes are too few: a window of {} tokens and the "
                    "token after it need {}",
                    file.string(), tokens.tokens.numel(), tokens.tokens.element_size(), sequence,
                    sequence + 1));
  return std::make_unique<Windows>(tokens.tokens, sequence, shape);
}

}  // namespace pipewright::exec
