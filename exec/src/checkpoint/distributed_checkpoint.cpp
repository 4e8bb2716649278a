#include "pipewright/exec/checkpoint/distributed_checkpoint.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "pipewright/exec/checkpoint/mapped_file.hpp"
#include "pipewright/exec/checkpoint/torch_file.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

using Box = std::vector<std::int64_t>;

/// The intersection of two boxes, and the count of its elements.
struct Overlap {
  Box begin, sizes;
  std::int64_t numbers = 1;
};

Overlap overlap_of(const Box& begin, const Box& sizes, const DistributedChunk& chunk) {
  Overlap overlap;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const std::int64_t first = std::max(begin[d], chunk.offsets[d]);
    const std::int64_t end = std::min(begin[d] + sizes[d], chunk.offsets[d] + chunk.sizes[d]);
    overlap.begin.push_back(first);
    overlap.sizes.push_back(std::max<std::int64_t>(0, end - first));
    overlap.numbers *= overlap.sizes.back();
  }
  return overlap;
}

at::Tensor box_in(at::Tensor whole, const Box& origin, const Overlap& overlap) {
  for (std::size_t d = 0; d < origin.size(); ++d)
    whole =
        whole.narrow(static_cast<std::int64_t>(d), overlap.begin[d] - origin[d], overlap.sizes[d]);
  return whole;
}

/// Throws InputError unless each chunk fits into its file, judging by the file's size.
void require_files(const std::filesystem::path& folder,
                   const std::map<std::string, DistributedTensor>& tensors) {
  std::map<std::string, std::int64_t> known;
  for (const auto& [name, tensor] : tensors)
    for (const DistributedChunk& part : tensor.chunks) {
      const auto file = folder / part.file;
      const auto [size, is_new] = known.try_emplace(part.file);
      std::error_code error;
      if (is_new)
        size->second = static_cast<std::int64_t>(std::filesystem::file_size(file, error));
      if (error)
        throw plan::InputError(fmt::format("{}: {}", file.string(), error.message()));
      if (part.begin > size->second || part.length > size->second - part.begin)
        throw plan::InputError(fmt::format(
            "{}: truncated: '{}' needs {} bytes from byte {} on, but the file has {} bytes",
            file.string(), name, part.length, part.begin, size->second));
    }
}

}  // namespace

struct DistributedCheckpoint::Files {
  std::mutex mutex;
  std::map<std::string, at::Tensor> mapped;
};

DistributedCheckpoint DistributedCheckpoint::open(const std::filesystem::path& folder) {
  const auto file = folder / ".metadata";
  const at::Tensor bytes = mapped(file);
  DistributedCheckpoint checkpoint;
  checkpoint.folder_ = folder;
  checkpoint.tensors_ = parse_distributed_metadata(text_of(bytes), file.string());
  require_files(folder, checkpoint.tensors_);
  checkpoint.files_ = std::make_shared<Files>();
  return checkpoint;
}

at::Tensor DistributedCheckpoint::chunk(const std::string& name,
                                        const DistributedChunk& chunk) const {
  const auto file = folder_ / chunk.file;
  at::Tensor bytes;
  {
    const std::lock_guard lock(files_->mutex);
    at::Tensor& known = files_->mapped[chunk.file];
    if (!known.defined())
      known = mapped(file);
    bytes = known;
  }
  const auto tensors =
      parse_torch_file(bytes, chunk.begin, chunk.begin + chunk.length,
                       fmt::format("{} from byte {} on", file.string(), chunk.begin));
  const auto found = tensors.find("");
  if (found == tensors.end() || found->second.sizes() != at::IntArrayRef(chunk.sizes))
    throw plan::InputError(fmt::format("{}: '{}' at [{}] is not a tensor [{}] as expected",
                                       file.string(), name, fmt::join(chunk.offsets, ", "),
                                       fmt::join(chunk.sizes, ", ")));
  return found->second;
}

at::Tensor DistributedCheckpoint::read(const std::string& name) const {
  const Box& sizes = tensors_.at(name).sizes;
  return read(name, Box(sizes.size(), 0), sizes);
}

at::Tensor DistributedCheckpoint::read(const std::string& name, const Box& begin,
                                       const Box& sizes) const {
  at::Tensor box;
  std::int64_t copied = 0;
  std::vector<Overlap> before;
  for (const DistributedChunk& part : tensors_.at(name).chunks) {
    Overlap overlap = overlap_of(begin, sizes, part);
    if (overlap.numbers == 0)
      continue;
    for (const Overlap& other : before)
      if (overlap_of(other.begin, other.sizes, part).numbers > 0)
        throw plan::InputError(fmt::format("{}: chunks of '{}' overlap", folder_.string(), name));
    const at::Tensor stored = chunk(name, part);
    if (!box.defined())
      box = at::empty(sizes, stored.scalar_type());
    box_in(box, begin, overlap).copy_(box_in(stored, part.offsets, overlap));
    copied += overlap.numbers;
    before.push_back(std::move(overlap));
  }
  const auto wanted = c10::multiply_integers(sizes);
  if (copied != wanted)
    throw plan::InputError(fmt::format("{}: chunks of '{}' have only {} of {} requested elements",
                                       folder_.string(), name, copied, wanted));
  return box.defined() ? box : at::empty(sizes);
}

NamedWeights weights_of(const DistributedCheckpoint& checkpoint) {
  NamedWeights weights{.where = checkpoint.folder().string()};
  for (const auto& [name, tensor] : checkpoint.tensors())
    weights.sizes[name] = tensor.sizes;
  weights.read = [checkpoint](const std::string& name) { return checkpoint.read(name); };
  return weights;
}

}  // namespace pipewright::exec
