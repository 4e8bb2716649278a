#include "pipewright/exec/data/tokens.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fstream>

#include "pipewright/plan/error.hpp"
#include "windows.hpp"

namespace pipewright::exec {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they are");

constexpr int words_in_two_bytes = 1 << 16;

/// How many tokens the file holds.
std::int64_t count_tokens(const std::filesystem::path& file, int sequence, int bytes) {
  std::error_code error;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(file, error));
  if (error)
    throw plan::InputError(fmt::format(
        "{}: {}; here belong tokens of {} bytes each, the lowest byte first, {} of them at least: "
        "numpy's `tokens.astype(\"<u{}\").tofile(path)` writes such a file",
        file.string(), error.message(), bytes, sequence + 1, bytes));
  if (size % bytes != 0)
    throw plan::InputError(
        fmt::format("{}: its {} bytes are {} whole tokens of {} bytes and {} bytes left over",
                    file.string(), size, size / bytes, bytes, size % bytes));
  if (size / bytes <= sequence)
    throw plan::InputError(
        fmt::format("{}: its {} tokens of {} bytes are too few: a window of {} tokens and the "
                    "token after it need {}",
                    file.string(), size / bytes, bytes, sequence, sequence + 1));
  if (!std::ifstream(file, std::ios::binary))
    throw plan::InputError(fmt::format("{}: cannot be read", file.string()));
  return size / bytes;
}

template <class Token>
void require_known(const at::Tensor& tokens, int vocabulary, const std::filesystem::path& file) {
  const auto* const begin = static_cast<const Token*>(tokens.const_data_ptr());
  const auto* const end = begin + tokens.numel();
  const auto* const found = std::find_if(
      begin, end, [words = static_cast<std::uint32_t>(vocabulary)](Token t) { return t >= words; });
  if (found != end)
    throw plan::InputError(
        fmt::format("{}: token {} (counted from 0) is {}, but the vocabulary has 0 to {}: "
                    "model.vocabulary, or the tokenizer, is another",
                    file.string(), found - begin, *found, vocabulary - 1));
}

}  // namespace

std::unique_ptr<Dataset> open_tokens(const std::filesystem::path& file, int sequence,
                                     int vocabulary, const BatchShape& shape) {
  const bool wide = vocabulary > words_in_two_bytes;
  const std::int64_t count = count_tokens(file, sequence, wide ? 4 : 2);
  const at::Tensor tokens = at::from_file(file.string(), /*shared=*/false, count,
                                          at::dtype(wide ? at::kUInt32 : at::kUInt16));
  wide ? require_known<std::uint32_t>(tokens, vocabulary, file)
       : require_known<std::uint16_t>(tokens, vocabulary, file);
  return std::make_unique<Windows>(tokens, sequence, shape);
}

}  // namespace pipewright::exec
