#include <array>

#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/checkpoint/safetensors.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::exec {
namespace {

std::int64_t bytes_of(const TensorShape& tensor) {
  auto bytes = static_cast<std::int64_t>(c10::elementSize(tensor.dtype));
  for (const std::int64_t size : tensor.sizes)
    bytes *= size;
  return bytes;
}

std::string little_endian(std::uint64_t number) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += static_cast<char>((number >> (8 * i)) & 0xff);
  return bytes;
}

}  // namespace

std::string safetensors_header(const std::vector<TensorShape>& tensors) {
  plan::Json header = plan::Json::object();
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

}  // namespace pipewright::exec
