// Safetensors: the tensors match the header and read back as written. The text is the header. The
// length before it and the data after it are generated, because mutations would hardly ever hit
// valid ones.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "pipewright/exec/checkpoint/safetensors.hpp"
#include "promise.hpp"
#include "reader.hpp"

namespace safetensors_fuzz {

using namespace pipewright::exec;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;

/// Number of data bytes that the corpus's headers describe.
constexpr std::size_t data_size = 40;

std::string file_of(std::string_view header) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes += header;
  return bytes + std::string(data_size, '\x2a');
}

void try_text(std::string_view text) {
  accepted([&] { return parse_safetensors(text, "raw"); });
  const auto values = accepted([&] { return parse_safetensors(file_of(text), "made to fit"); });
  if (!values)
    return;
  std::vector<TensorShape> shapes;
  std::string numbers;
  for (const StoredValue& stored : *values) {
    shapes.push_back({stored.name, stored.value.scalar_type(), stored.value.sizes().vec()});
    numbers.append(static_cast<const char*>(stored.value.const_data_ptr()), stored.value.nbytes());
  }
  demand(numbers == std::string(data_size, '\x2a'), "all numbers are in a tensor");
  const auto again = parse_safetensors(safetensors_header(shapes) + numbers, "again");
  demand(again.size() == values->size(), "reads back as written");
  for (std::size_t t = 0; t < again.size(); ++t)
    demand(again[t].name == shapes[t].name && again[t].value.sizes() == shapes[t].sizes &&
               again[t].value.scalar_type() == shapes[t].dtype,
           "reads back with its names and sizes");
}

const pipewright::fuzz::Reader reader("safetensors", try_text);

}  // namespace safetensors_fuzz
