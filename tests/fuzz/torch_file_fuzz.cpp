// Files of torch.save: raw bytes, and the text as the pickle of an archive that is made to fit,
// with the storages that the corpus asks for. Every tensor that is given can be read to its last
// number.

#include <ATen/ATen.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/exec/checkpoint/torch_file.hpp"
#include "promise.hpp"
#include "reader.hpp"

namespace torch_file_fuzz {

using namespace pipewright::exec;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;

void append(std::string& bytes, std::uint64_t number, int width) {
  for (; width > 0; --width, number >>= 8)
    bytes += static_cast<char>(number & 0xff);
}

/// Entries one behind the other, and their directory.
std::string zip_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string bytes, directory;
  for (const auto& [name, content] : entries) {
    const std::size_t begin = bytes.size();
    std::string head;  // from the flags on, the same in both
    append(head, 0, 12);
    append(head, content.size(), 4);
    append(head, content.size(), 4);
    append(head, name.size(), 2);
    append(head, 0, 2);
    append(bytes, 0x04034b50, 4);
    append(bytes, 0, 2);
    bytes += head + name + content;
    append(directory, 0x02014b50, 4);
    append(directory, 0, 4);
    directory += head;
    append(directory, 0, 10);
    append(directory, begin, 4);
    directory += name;
  }
  const std::size_t begin = bytes.size();
  bytes += directory;
  append(bytes, 0x06054b50, 4);
  append(bytes, 0, 4);
  append(bytes, entries.size(), 2);
  append(bytes, entries.size(), 2);
  append(bytes, directory.size(), 4);
  append(bytes, begin, 4);
  append(bytes, 0, 2);
  return bytes;
}

void try_bytes(const std::string& bytes) {
  at::Tensor all = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  if (!bytes.empty())
    std::memcpy(all.data_ptr(), bytes.data(), bytes.size());
  const auto tensors = accepted([&] { return parse_torch_file(all, 0, all.numel(), "file"); });
  if (!tensors)
    return;
  for (const auto& [name, tensor] : *tensors) {
    demand(tensor.nbytes() <= bytes.size(), "no tensor has more numbers than the file");
    const at::Tensor copy = tensor.clone(at::MemoryFormat::Contiguous);
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < copy.nbytes(); ++at)
      sum += static_cast<const unsigned char*>(copy.const_data_ptr())[at];
    demand(sum <= 255 * copy.nbytes(), "all of it can be read");
  }
}

void try_text(std::string_view text) {
  try_bytes(std::string(text));
  const std::string storage(64, '\x2a');
  try_bytes(zip_of({{"a/data.pkl", std::string(text)},
                    {"a/byteorder", "little"},
                    {"a/data/0", storage},
                    {"a/data/1", storage},
                    {"a/data/2", storage}}));
}

const pipewright::fuzz::Reader reader("torch_file", try_text);

}  // namespace torch_file_fuzz
