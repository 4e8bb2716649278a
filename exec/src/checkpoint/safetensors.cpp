#include "pipewright/exec/checkpoint/safetensors.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::exec {
namespace {

using plan::Json;

std::string little_endian(std::uint64_t number) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += static_cast<char>((number >> (8 * i)) & 0xff);
  return bytes;
}

constexpr std::uint64_t longest_header = 100'000'000;  // bytes; the limit of other readers of the
                                                       // format

class Parser {
 public:
  Parser(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  std::vector<StoredPlace> places() const {
    const std::string_view text = header();
    const auto document = plan::JsonDocument::parse(std::string(text), file_ + ", header");
    if (!document.root().is_object())
      refuse("the header is not a JSON object");
    std::vector<StoredPlace> entries;
    for (const auto& item : document.root().items())
      if (item.key() != "__metadata__")
        entries.push_back(entry(item.key(), item.value()));
    return in_order(std::move(entries), 8 + static_cast<std::int64_t>(text.size()));
  }

  std::vector<StoredValue> values() const {
    std::vector<StoredValue> all;
    for (const StoredPlace& place : places())
      all.push_back({place.shape.name, copied(place)});
    return all;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw plan::InputError(fmt::format("{}: {}", file_, what));
  }

  std::string_view header() const {
    if (bytes_.size() < 8)
      refuse(fmt::format("the file has {} bytes, which is too short for a header length",
                         bytes_.size()));
    std::uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), sizeof(length));
    if (length > longest_header || length > bytes_.size() - 8)
      refuse(
          fmt::format("the header should have {} bytes, but {} follow", length, bytes_.size() - 8));
    return bytes_.substr(8, length);
  }

  StoredPlace entry(const std::string& name, const Json& value) const {
    const auto is = [&](const char* key) { return value.is_object() && value.contains(key); };
    if (!is("dtype") || !is("shape") || !is("data_offsets") || value.size() != 3)
      refuse(fmt::format("tensor '{}' must have dtype, shape and data_offsets, and nothing else",
                         name));
    const Json& code = value.at("dtype");
    const auto dtype = code.is_string() ? dtype_of(code.get<std::string>()) : std::nullopt;
    if (!dtype)
      refuse(fmt::format("tensor '{}' has the unknown type {}", name, code.dump()));
    const auto offsets = numbers(name, value.at("data_offsets"));
    if (offsets.size() != 2 || offsets[0] > offsets[1])
      refuse(fmt::format("tensor '{}' has the invalid data_offsets {}", name,
                         value.at("data_offsets").dump()));
    StoredPlace entry{{name, *dtype, numbers(name, value.at("shape"))}, offsets[0], offsets[1]};
    check_size(entry);
    check_shape(entry);
    return entry;
  }

  std::vector<std::int64_t> numbers(const std::string& name, const Json& list) const {
    const auto fits = [](const Json& item) {
      return item.is_number_unsigned() && item.get<std::int64_t>() >= 0;
    };
    if (!list.is_array() || !std::all_of(list.begin(), list.end(), fits))
      refuse(fmt::format("tensor '{}': {} is not a list of sizes", name, list.dump()));
    return list.get<std::vector<std::int64_t>>();
  }

  /// Rejects sizes whose product exceeds 64 bits. With a size of zero among them they take no
  /// bytes, but no tensor can have them.
  void check_shape(const StoredPlace& entry) const {
    std::int64_t numbers = static_cast<std::int64_t>(c10::elementSize(entry.shape.dtype));
    for (const std::int64_t size : entry.shape.sizes)
      if (size > 0 && __builtin_mul_overflow(numbers, size, &numbers))
        refuse(fmt::format("tensor '{}' is too large: [{}]", entry.shape.name,
                           fmt::join(entry.shape.sizes, ", ")));
  }

  void check_size(const StoredPlace& entry) const {
    plan::Bytes size{static_cast<std::int64_t>(c10::elementSize(entry.shape.dtype))};
    for (const std::int64_t count : entry.shape.sizes)
      size = size * count;
    if (size.value != entry.end - entry.begin)
      refuse(fmt::format("tensor '{}' of {} [{}] needs {} bytes, but its data_offsets have {}",
                         entry.shape.name, word_of(entry.shape.dtype),
                         fmt::join(entry.shape.sizes, ", "), size.value, entry.end - entry.begin));
  }

  /// Sorts tensors by their place and makes their offsets relative to the file. They must follow
  /// each other without a gap or an overlap, from the end of the header to the end of the file.
  std::vector<StoredPlace> in_order(std::vector<StoredPlace> entries, std::int64_t first) const {
    std::stable_sort(entries.begin(), entries.end(),
                     [](const StoredPlace& a, const StoredPlace& b) {
                       return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                     });
    std::int64_t end = 0;
    const std::int64_t size = static_cast<std::int64_t>(bytes_.size()) - first;
    for (StoredPlace& entry : entries) {
      if (entry.begin != end)
        refuse(fmt::format("tensor '{}' begins at byte {} of the data instead of {}",
                           entry.shape.name, entry.begin, end));
      end = entry.end;
      if (end > size)
        refuse(fmt::format("tensor '{}' ends at byte {} of the data, which has {} bytes",
                           entry.shape.name, end, size));
      entry.begin += first;
      entry.end += first;
    }
    if (end != size)
      refuse(fmt::format("the data have {} bytes, but the tensors use {}", size, end));
    return entries;
  }

  at::Tensor copied(const StoredPlace& entry) const {
    at::Tensor value = at::empty(entry.shape.sizes, entry.shape.dtype);
    if (const auto size = static_cast<std::size_t>(entry.end - entry.begin); size > 0)
      std::memcpy(value.data_ptr(), bytes_.data() + entry.begin, size);
    return value;
  }

  std::string_view bytes_;
  std::string file_;
};

}  // namespace

std::int64_t bytes_of(const TensorShape& tensor) {
  auto bytes = static_cast<std::int64_t>(c10::elementSize(tensor.dtype));
  for (const std::int64_t size : tensor.sizes)
    bytes *= size;
  return bytes;
}

std::string safetensors_header(const std::vector<TensorShape>& tensors) {
  Json header = Json::object();
  std::int64_t end = 0;
  for (const TensorShape& tensor : tensors) {
    const std::int64_t begin = end;
    end += bytes_of(tensor);
    header[tensor.name] = {
        {"dtype", code_of(tensor.dtype)}, {"shape", tensor.sizes}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  return little_endian(text.size()) + text;
}

std::vector<StoredValue> parse_safetensors(std::string_view bytes, const std::string& file) {
  return Parser(bytes, file).values();
}

std::vector<StoredPlace> safetensors_places(std::string_view bytes, const std::string& file) {
  return Parser(bytes, file).places();
}

}  // namespace pipewright::exec
