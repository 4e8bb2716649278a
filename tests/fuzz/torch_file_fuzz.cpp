// torch.save files: the text is tried as raw bytes and as the pickle of an otherwise valid archive,
// with the storages that the corpus refers to. Every returned tensor can be read to its last
// element.

#include <ATen/ATen.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/exec/checkpoint/torch_file.hpp"
#include "promise.hpp"
#include "reader.hpp"
#include "support/zip_archive.hpp"

namespace torch_file_fuzz {

using namespace pipewright::exec;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;

void try_bytes(const std::string& bytes) {
  at::Tensor all = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  if (!bytes.empty())
    std::memcpy(all.data_ptr(), bytes.data(), bytes.size());
  const auto tensors = accepted([&] { return parse_torch_file(all, 0, all.numel(), "file"); });
  if (!tensors)
    return;
  for (const auto& [name, tensor] : *tensors) {
    demand(tensor.nbytes() <= bytes.size(), "no tensor is larger than the file");
    const at::Tensor copy = tensor.clone(at::MemoryFormat::Contiguous);
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < copy.nbytes(); ++at)
      sum += static_cast<const unsigned char*>(copy.const_data_ptr())[at];
    demand(sum <= 255 * copy.nbytes(), "all of a tensor can be read");
  }
}

void try_text(std::string_view text) {
  try_bytes(std::string(text));
  const std::string storage(64, '\x2a');
  try_bytes(pipewright::test::zip_of({{"a/data.pkl", std::string(text)},
                                      {"a/byteorder", "little"},
                                      {"a/data/0", storage},
                                      {"a/data/1", storage},
                                      {"a/data/2", storage}}));
}

const pipewright::fuzz::Reader reader("torch_file", try_text);

}  // namespace torch_file_fuzz
