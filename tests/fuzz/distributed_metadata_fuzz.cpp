// `.metadata` of torch.distributed.checkpoint: the chunks of each tensor are within it and have its
// number of elements, and their files are names within the folder.

#include <string>
#include <string_view>

#include "pipewright/exec/checkpoint/distributed_checkpoint.hpp"
#include "promise.hpp"
#include "reader.hpp"

namespace distributed_metadata_fuzz {

using namespace pipewright::exec;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;

void try_text(std::string_view text) {
  const auto tensors = accepted([&] { return parse_distributed_metadata(text, "metadata"); });
  if (!tensors)
    return;
  for (const auto& [name, tensor] : *tensors) {
    std::int64_t whole = 1, all = 0;
    for (const std::int64_t size : tensor.sizes)
      whole *= size;
    for (const DistributedChunk& chunk : tensor.chunks) {
      demand(chunk.offsets.size() == tensor.sizes.size(), "a chunk has the tensor's dimensions");
      std::int64_t numbers = 1;
      for (std::size_t d = 0; d < tensor.sizes.size(); ++d) {
        demand(chunk.offsets[d] >= 0 && chunk.sizes[d] >= 0 &&
                   chunk.offsets[d] + chunk.sizes[d] <= tensor.sizes[d],
               "a chunk lies in its tensor");
        numbers *= chunk.sizes[d];
      }
      all += numbers;
      demand(chunk.begin >= 0 && chunk.length >= numbers, "a chunk has bytes for its numbers");
      demand(!chunk.file.empty() && chunk.file.find('/') == std::string::npos && chunk.file != "..",
             "a chunk's file lies in the folder");
    }
    demand(all == whole, "chunks have all numbers");
  }
}

const pipewright::fuzz::Reader reader("distributed_metadata", try_text);

}  // namespace distributed_metadata_fuzz
