#include "token_file.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fstream>
#include <iterator>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/lfs_pointer.hpp"
#include "token_index.hpp"

namespace pipewright::exec {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "files are read as they are");

constexpr int words_in_two_bytes = 1 << 16;
constexpr std::int64_t page = 1 << 16;           // tokens that are checked at a time
constexpr std::int64_t looked_through = 1 << 8;  // pages that are checked in a large file

std::int64_t size_of(const fs::path& file, int bytes) {
  std::error_code error;
  const auto size = static_cast<std::int64_t>(fs::file_size(file, error));
  if (error)
    throw plan::InputError(
        fmt::format("{}: {}. Expected a file of tokens with {} bytes each, the lowest byte first; "
                    "numpy's `tokens.astype(\"<u{}\").tofile(path)` writes such a file",
                    file.string(), error.message(), bytes, bytes));
  if (size % bytes != 0)
    throw plan::InputError(
        fmt::format("{}: its {} bytes are {} whole tokens of {} bytes and {} bytes left over",
                    file.string(), size, size / bytes, bytes, size % bytes));
  return size;
}

std::string contents(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream)
    throw plan::InputError(fmt::format("{}: cannot be read", file.string()));
  return text;
}

/// Throws InputError for a token outside the vocabulary. Checks all of a small file, and evenly
/// spaced pages of a large one.
void require_known(const at::Tensor& tokens, int vocabulary, const fs::path& file) {
  const std::int64_t pages = (tokens.numel() + page - 1) / page;
  const std::int64_t looked_at = std::min(pages, looked_through);
  for (std::int64_t at = 0; at < looked_at; ++at) {
    const std::int64_t first =
        (looked_at == pages ? at : at * (pages - 1) / (looked_at - 1)) * page;
    const at::Tensor some =
        tokens.narrow(0, first, std::min(page, tokens.numel() - first)).to(at::kLong);
    const at::Tensor unknown = (some < 0).logical_or_(some >= vocabulary);
    if (!unknown.any().item<bool>())
      continue;
    const auto place = unknown.nonzero()[0].item<std::int64_t>();
    throw plan::InputError(fmt::format(
        "{}: token {} (counted from 0) is {}, but the vocabulary has 0 to {}. Check "
        "model.vocabulary and the tokenizer",
        file.string(), first + place, some[place].item<std::int64_t>(), vocabulary - 1));
  }
}

at::Tensor mapped(const fs::path& file, std::int64_t count, at::ScalarType type) {
  if (!std::ifstream(file, std::ios::binary))
    throw plan::InputError(fmt::format("{}: cannot be read", file.string()));
  return count == 0 ? at::empty({0}, type)
                    : at::from_file(file.string(), /*shared=*/false, count, at::dtype(type));
}

/// Throws InputError for a Git LFS pointer and for numpy's own format, which has a header.
void require_raw(const fs::path& file) {
  std::string beginning(100, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  plan::reject_lfs_pointer(beginning, file.string());
  if (beginning.starts_with("\x93NUMPY"))
    throw plan::InputError(fmt::format(
        "{}: this is an array file of numpy, which begins with a header. Write the numbers alone, "
        "with `tofile`",
        file.string()));
}

/// Throws InputError if every second token, or three of four, are 0: the file then has twice or
/// four times as many bytes per token. Checks the beginning of the file, unless it is all 0.
void require_width(const at::Tensor& tokens, const fs::path& file) {
  constexpr std::int64_t least = 32;  // fewer tokens prove nothing
  const std::int64_t count = std::min(page, tokens.numel()) / 4 * 4;
  if (count < least)
    return;
  const at::Tensor known = tokens.narrow(0, 0, count).to(at::kLong).view({-1, 4}) != 0;
  const at::Tensor by_place = known.any(0);
  const bool first = by_place[0].item<bool>(), third = by_place[2].item<bool>();
  if (by_place[1].item<bool>() || by_place[3].item<bool>() || !(first || third))
    return;
  const std::int64_t bytes = tokens.element_size(), own = (third ? 2 : 4) * bytes;
  throw plan::InputError(fmt::format(
      "{}: read as tokens of {} bytes, {} is 0, so it seems to have tokens of {} bytes. Write {} "
      "bytes per token; numpy's `tokens.astype(\"<u{}\").tofile(path)` does",
      file.string(), bytes, third ? "every second one" : "all but every fourth one", own, bytes,
      bytes));
}

}  // namespace

TokenFile map_tokens(const fs::path& file, int vocabulary) {
  const fs::path index_file = fs::path(file).replace_extension(".idx");
  if (std::error_code none; fs::exists(index_file, none)) {
    const fs::path tokens_file = fs::path(file).replace_extension(".bin");
    TokenIndex index = parse_token_index(contents(index_file), index_file.string());
    const auto bytes = static_cast<std::int64_t>(elementSize(index.type));
    if (const std::int64_t size = size_of(tokens_file, static_cast<int>(bytes));
        size != index.tokens * bytes)
      throw plan::InputError(
          fmt::format("{}: {} says {} tokens of {} bytes, but the file has {} bytes",
                      tokens_file.string(), index_file.string(), index.tokens, bytes, size));
    TokenFile pair{mapped(tokens_file, index.tokens, index.type), std::move(index.ends)};
    require_known(pair.tokens, vocabulary, tokens_file);
    return pair;
  }
  const bool wide = vocabulary > words_in_two_bytes;
  const int bytes = wide ? 4 : 2;
  require_raw(file);
  TokenFile plain{mapped(file, size_of(file, bytes) / bytes, wide ? at::kUInt32 : at::kUInt16), {}};
  require_width(plain.tokens, file);
  require_known(plain.tokens, vocabulary, file);
  return plain;
}

}  // namespace pipewright::exec
