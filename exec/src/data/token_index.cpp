#include "token_index.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

constexpr std::string_view magic("MMIDIDX\0\0", 9);
constexpr std::uint64_t known_version = 1;

std::optional<at::ScalarType> type_of(std::uint8_t code) {
  switch (code) {
    case 1:
      return at::kByte;
    case 2:
      return at::kChar;
    case 3:
      return at::kShort;
    case 4:
      return at::kInt;
    case 5:
      return at::kLong;
    case 8:
      return at::kUInt16;
    default:
      return {};
  }
}

/// Reads consecutive numbers.
class Reader {
 public:
  Reader(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw plan::InputError(fmt::format("{}: {}", file_, what));
  }

  template <class Number>
  Number next(const char* what) {
    Number number{};
    std::memcpy(&number, take(1, sizeof(Number), what).data(), sizeof(Number));
    return number;
  }
  template <class Number>
  std::vector<Number> next(std::uint64_t count, const char* what) {
    const std::string_view taken = take(count, sizeof(Number), what);
    std::vector<Number> numbers(static_cast<std::size_t>(count));
    if (count > 0)
      std::memcpy(numbers.data(), taken.data(), taken.size());
    return numbers;
  }
  std::string_view take(std::uint64_t count, std::size_t size, const char* what) {
    if (count > bytes_.size() / size)
      refuse(fmt::format(
          "unexpected end before {} (expected {} of {} bytes each, but {} bytes follow)", what,
          count, size, bytes_.size()));
    const std::string_view taken = bytes_.substr(0, static_cast<std::size_t>(count) * size);
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  const std::string& file_;
};

/// Returns the end of each sequence, in tokens. Sequences must be consecutive, without gaps.
std::vector<std::int64_t> ends_of(const std::vector<std::int32_t>& lengths,
                                  const std::vector<std::int64_t>& begins, std::int64_t size,
                                  const Reader& reader) {
  std::vector<std::int64_t> ends;
  std::int64_t end = 0;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    if (lengths[s] < 0 || begins[s] != end * size)
      reader.refuse(
          fmt::format("sequence {} of {} tokens begins at byte {}, but the previous one ends at {}",
                      s, lengths[s], begins[s], end * size));
    end += lengths[s];
    ends.push_back(end);
  }
  return ends;
}

}  // namespace

TokenIndex parse_token_index(std::string_view bytes, const std::string& file) {
  Reader reader(bytes, file);
  if (!bytes.starts_with(magic))
    reader.refuse("it does not begin like an .idx file of Megatron-LM (MMIDIDX)");
  reader.take(magic.size(), 1, "its name");
  const auto version = reader.next<std::uint64_t>("its version");
  if (version != known_version)
    reader.refuse(
        fmt::format("it has version {}, but only version {} is supported", version, known_version));
  const auto code = reader.next<std::uint8_t>("the type of its tokens");
  const auto type = type_of(code);
  if (!type)
    reader.refuse(
        fmt::format("token type {} is not an integer type (possible: 1 to 5, for 1, 1, 2, 4 and 8 "
                    "bytes, and 8, for 2 unsigned bytes)",
                    code));
  const auto sequences = reader.next<std::uint64_t>("the number of sequences");
  const auto documents = reader.next<std::uint64_t>("the number of documents");
  const auto lengths = reader.next<std::int32_t>(sequences, "the lengths of sequences");
  const auto begins = reader.next<std::int64_t>(sequences, "the offsets of sequences");
  const auto borders = reader.next<std::int64_t>(documents, "the boundaries of documents");
  const auto ends = ends_of(lengths, begins, static_cast<std::int64_t>(elementSize(*type)), reader);
  TokenIndex index{*type, ends.empty() ? 0 : ends.back(), {}};
  std::int64_t last = 0;  // end of the documents so far, as a sequence number
  for (const std::int64_t border : borders) {
    if (border < last || border > static_cast<std::int64_t>(ends.size()))
      reader.refuse(fmt::format("a document ends at sequence {}, which is not between {} and {}",
                                border, last, ends.size()));
    if (border > last)
      index.ends.push_back(ends[static_cast<std::size_t>(border) - 1]);
    last = border;
  }
  if (!borders.empty() && last != static_cast<std::int64_t>(ends.size()))
    reader.refuse(fmt::format("the last document ends at sequence {} of {}", last, ends.size()));
  return index;
}

}  // namespace pipewright::exec
