#include "checkpoint/write_part.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "checkpoint/names.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/exec/checkpoint/durable_file.hpp"
#include "pipewright/exec/checkpoint/safetensors.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"

namespace pipewright::exec {
namespace {

namespace fs = std::filesystem;

/// The files that a part has written so far. Removes them again unless `keep` is called.
class MadeFiles {
 public:
  MadeFiles() = default;
  ~MadeFiles() {
    std::error_code ignored;
    for (const fs::path& file : files_)
      fs::remove(file, ignored);
  }
  MadeFiles(const MadeFiles&) = delete;
  MadeFiles& operator=(const MadeFiles&) = delete;
  void add(const fs::path& file) { files_.push_back(file); }
  void keep() { files_.clear(); }

 private:
  std::vector<fs::path> files_;
};

TensorShape shape_of(const NamedTensor& tensor) {
  return {tensor.name, tensor.value.scalar_type(), tensor.value.sizes().vec()};
}

/// Sorts wide types first, so that each tensor is aligned for its type.
std::vector<NamedTensor> in_file_order(std::vector<NamedTensor> tensors) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) {
    return a.value.element_size() > b.value.element_size();
  });
  return tensors;
}

/// Limits the rate of writing to `most_bytes_per_s`.
class Pace {
 public:
  explicit Pace(double most_bytes_per_s) : most_(most_bytes_per_s) {}

  void write(DurableFile& file, const char* data, std::size_t size) {
    if (most_ <= 0)
      return file.write(data, size);
    constexpr std::size_t piece = 1 << 20;
    for (std::size_t at = 0; at < size; at += piece) {
      const std::size_t length = std::min(piece, size - at);
      file.write(data + at, length);
      written_ += static_cast<double>(length);
      std::this_thread::sleep_until(began_ + std::chrono::duration<double>(written_ / most_));
    }
  }

 private:
  double most_;
  double written_ = 0;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

void write_tensors(DurableFile& file, const std::vector<NamedTensor>& tensors, Pace& pace) {
  std::vector<TensorShape> shapes;
  shapes.reserve(tensors.size());
  for (const NamedTensor& tensor : tensors)
    shapes.push_back(shape_of(tensor));
  const std::string header = safetensors_header(shapes);
  file.write(header.data(), header.size());
  for (const NamedTensor& tensor : tensors) {
    const at::Tensor value = tensor.value.detach().cpu().contiguous();
    pace.write(file, static_cast<const char*>(value.const_data_ptr()), value.nbytes());
  }
  file.close();
}

std::vector<StoredTensor> described(const std::vector<NamedTensor>& tensors) {
  std::vector<StoredTensor> stored;
  stored.reserve(tensors.size());
  for (const NamedTensor& tensor : tensors)
    stored.push_back({shape_of(tensor), tensor.begin, tensor.whole, tensor.part});
  return stored;
}

/// Returns true if other ranks hold the rest of some of these tensors.
bool are_some_shared_out(const std::vector<NamedTensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const NamedTensor& tensor) {
    return tensor.whole >= 0 || tensor.part.count > 1;
  });
}

}  // namespace

Manifest write_part(const fs::path& folder, const Snapshot& snapshot,
                    const CheckpointOptions& options) {
  Manifest manifest{.job = options.job,
                    .part = options.part,
                    .failure = {},
                    .training = snapshot.training,
                    .layers = {}};
  MadeFiles made;
  Pace pace(options.most_bytes_per_s);
  std::map<std::pair<Holds, int>, int> files_of;  // number of files of each layer
  const auto write = [&](const LayerState& layer, Holds holds,
                         const std::vector<NamedTensor>& tensors) {
    const auto part = are_some_shared_out(tensors) ? std::optional(options.part) : std::nullopt;
    // Several ranks of this process may hold parts of one layer.
    const int before = files_of[{holds, layer.index}]++;
    const std::string name = file_name(holds, layer.index, part, before);
    DurableFile file(folder / name);
    made.add(folder / name);
    write_tensors(file, in_file_order(tensors), pace);
    return StoredFile{name, holds, file.size(), file.checksum(), described(tensors)};
  };
  for (const LayerState& layer : snapshot.layers) {
    StoredLayer stored{layer.index, layer.name, {}};
    if (!layer.parameters.empty())
      stored.files.push_back(write(layer, Holds::Parameters, layer.parameters));
    if (!layer.optimizer.empty())
      stored.files.push_back(write(layer, Holds::Optimizer, layer.optimizer));
    manifest.layers.push_back(std::move(stored));
  }
  made.keep();
  return manifest;
}

}  // namespace pipewright::exec
