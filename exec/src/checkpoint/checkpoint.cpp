#include "pipewright/exec/checkpoint/checkpoint.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "names.hpp"
#include "pieces.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/plan/error.hpp"
#include "stored_files.hpp"

namespace pipewright::exec {
namespace {

namespace fs = std::filesystem;

/// One layer of an open checkpoint. Reads a file when its first tensor is requested, and keeps it
/// for the others.
class OpenLayer {
 public:
  OpenLayer(const fs::path& folder, const StoredLayer& layer) : folder_(folder), layer_(layer) {}

  std::vector<NamedTensor> read(Holds holds) {
    std::vector<NamedTensor> tensors;
    for (const PiecedTensor& tensor : pieces_of(layer_, holds))
      tensors.push_back(
          {.name = tensor.shape.name, .value = put_together(tensor), .part = tensor.part});
    return tensors;
  }

 private:
  at::Tensor put_together(const PiecedTensor& tensor) {
    Tensors pieces;
    for (const Piece& piece : tensor.pieces)
      pieces.push_back(value_of(piece));
    return pieces.size() == 1 ? pieces.front() : at::cat(pieces);
  }

  at::Tensor value_of(const Piece& piece) {
    auto file = files_.find(piece.file->name);
    if (file == files_.end())
      file = files_.emplace(piece.file->name, read_stored(folder_, *piece.file)).first;
    const std::string& name = piece.tensor->shape.name;
    return std::find_if(file->second.begin(), file->second.end(),
                        [&](const StoredValue& value) { return value.name == name; })
        ->value;
  }

  fs::path folder_;
  const StoredLayer& layer_;
  std::map<std::string, std::vector<StoredValue>> files_;
};

}  // namespace

Checkpoint::Checkpoint(fs::path folder, std::shared_ptr<const Manifest> manifest)
    : folder_(std::move(folder)), manifest_(std::move(manifest)) {}

Checkpoint Checkpoint::open(const fs::path& folder) {
  auto manifest = std::make_shared<Manifest>(read_manifest(folder / manifest_name));
  try {
    require_whole(*manifest);
  } catch (const plan::InputError& error) {
    throw plan::InputError(fmt::format("{}: {}", (folder / manifest_name).string(), error.what()));
  }
  require_files(folder, *manifest);
  return {folder, std::move(manifest)};
}

const TrainingState& Checkpoint::training() const { return manifest_->training; }

std::vector<LayerShape> Checkpoint::layers() const {
  std::vector<LayerShape> shapes;
  for (const StoredLayer& layer : manifest_->layers) {
    shapes.push_back({layer.name, whole_shapes(pieces_of(layer, Holds::Parameters))});
  }
  return shapes;
}

LayerState Checkpoint::layer(int index) const { return read(index, true, true); }
LayerState Checkpoint::parameters_of(int index) const { return read(index, true, false); }
LayerState Checkpoint::optimizer_of(int index) const { return read(index, false, true); }

LayerState Checkpoint::read(int index, bool parameters, bool optimizer) const {
  const auto& layers = manifest_->layers;
  if (index < 0 || static_cast<std::size_t>(index) >= layers.size())
    throw plan::InputError(
        fmt::format("{}: layer {} was requested, but the checkpoint has {} layers",
                    folder_.string(), index, layers.size()));
  const StoredLayer& stored = layers[static_cast<std::size_t>(index)];
  OpenLayer open(folder_, stored);
  return {.index = index,
          .name = stored.name,
          .parameters = parameters ? open.read(Holds::Parameters) : std::vector<NamedTensor>(),
          .optimizer = optimizer ? open.read(Holds::Optimizer) : std::vector<NamedTensor>()};
}

void Checkpoint::verify() const {
  for (const StoredLayer& layer : manifest_->layers)
    for (const StoredFile& stored : layer.files)
      verify_file(folder_, stored);
}

}  // namespace pipewright::exec
