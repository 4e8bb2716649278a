#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "checkpoint/torch_names.hpp"
#include "pipewright/exec/checkpoint/distributed_checkpoint.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/pickle/pickle.hpp"

namespace pipewright::exec {
namespace {

using plan::PickleNode;
using Kind = PickleNode::Kind;
using Box = std::vector<std::int64_t>;

const std::string metadata_module = "torch.distributed.checkpoint.metadata ";

std::set<std::string> names_in_metadata() {
  std::set<std::string> names = plain_torch_names();
  for (const char* const type :
       {"Metadata", "TensorStorageMetadata", "TensorProperties", "BytesStorageMetadata",
        "ChunkStorageMetadata", "MetadataIndex", "StorageMeta", "_MEM_FORMAT_ENCODING"})
    names.insert(metadata_module + type);
  names.insert({"torch.distributed._shard.sharded_tensor.metadata TensorProperties",
                "torch.distributed._shard.sharded_tensor.metadata MEM_FORMAT_ENCODING",
                "torch.distributed.checkpoint.filesystem _StorageInfo",
                "torch.serialization _get_layout", "builtins getattr", "pathlib PosixPath"});
  return names;
}

/// The key of a chunk: tensor name and offsets. The offsets are empty if the tensor has only one
/// chunk.
using Index = std::pair<std::string, Box>;

class MetadataReader {
 public:
  MetadataReader(std::string_view bytes, const std::string& file)
      : file_(file), pickled_(plan::parse_pickle(bytes, file, names_in_metadata())) {}

  std::map<std::string, DistributedTensor> tensors() const {
    const PickleNode& root = *pickled_.root;
    const auto places = storage_places(field(root, "storage_data", Kind::Dict));
    const PickleNode& described = field(root, "state_dict_metadata", Kind::Dict);
    std::map<std::string, DistributedTensor> tensors;
    for (std::size_t at = 0; at + 1 < described.items.size(); at += 2) {
      const PickleNode &name = *described.items[at], &value = *described.items[at + 1];
      if (!name.is(Kind::Text))
        refuse(name, "a tensor's name is not a string");
      if (value.is_call_of(metadata_module + "TensorStorageMetadata"))
        tensors[name.text] = tensor_of(name, value, places);
    }
    return tensors;
  }

 private:
  [[noreturn]] void refuse(const PickleNode& node, const std::string& what) const {
    throw plan::InputError(fmt::format("{}: byte {}: {}", file_, node.offset, what));
  }

  /// Returns a field of an object's pickled state, or null if it has none of that name.
  const PickleNode* find_field(const PickleNode& object, std::string_view name) const {
    return object.is(Kind::Call) && object.state != nullptr ? object.state->find(name) : nullptr;
  }
  const PickleNode& field(const PickleNode& object, std::string_view name, Kind kind) const {
    const PickleNode* const found = find_field(object, name);
    if (found == nullptr || !found->is(kind))
      refuse(object, fmt::format("an object has no '{}' of the expected type", name));
    return *found;
  }

  Box box_of(const PickleNode& object, std::string_view name) const {
    return sizes_of(field(object, name, Kind::Call));
  }
  /// Reads `torch.Size((2, 3))`.
  Box sizes_of(const PickleNode& node) const {
    if (!node.is_call_of("torch Size") || node.items[1]->items.size() != 1 ||
        !node.items[1]->items[0]->is(Kind::List))
      refuse(node, "this is not a torch.Size");
    Box box;
    for (const PickleNode* const item : node.items[1]->items[0]->items) {
      if (!item->is(Kind::Integer) || item->integer < 0)
        refuse(node, "this is not a list of sizes");
      box.push_back(item->integer);
    }
    return box;
  }

  std::map<Index, const PickleNode*> storage_places(const PickleNode& storage) const {
    std::map<Index, const PickleNode*> places;
    for (std::size_t at = 0; at + 1 < storage.items.size(); at += 2) {
      const PickleNode& index = *storage.items[at];
      const PickleNode* const offset = find_field(index, "offset");
      const bool has_offset = offset != nullptr && !offset->is(Kind::None);
      places[{field(index, "fqn", Kind::Text).text, has_offset ? sizes_of(*offset) : Box()}] =
          storage.items[at + 1];
    }
    return places;
  }

  DistributedTensor tensor_of(const PickleNode& name, const PickleNode& value,
                              const std::map<Index, const PickleNode*>& places) const {
    DistributedTensor tensor{.sizes = box_of(value, "size"), .chunks = {}};
    std::int64_t all = 0;
    for (const PickleNode* const chunk : field(value, "chunks", Kind::List).items) {
      tensor.chunks.push_back(chunk_of(name, *chunk, tensor.sizes, places));
      if (__builtin_add_overflow(all, numbers_in(*chunk, tensor.chunks.back().sizes), &all))
        refuse(*chunk, "the number of elements in chunks exceeds 64 bits");
    }
    if (const std::int64_t wanted = numbers_in(value, tensor.sizes); all != wanted)
      refuse(value,
             fmt::format("'{}' has {} elements, but its chunks have {}", name.text, wanted, all));
    return tensor;
  }

  std::int64_t numbers_in(const PickleNode& node, const Box& sizes) const {
    std::int64_t numbers = 1, all = 1;
    for (const std::int64_t size : sizes)
      if (__builtin_mul_overflow(all, std::max<std::int64_t>(size, 1), &all) ||
          __builtin_mul_overflow(numbers, size, &numbers) || all > std::int64_t{1} << 55)
        refuse(node, fmt::format("a tensor cannot have the sizes [{}]", fmt::join(sizes, ", ")));
    return numbers;
  }

  DistributedChunk chunk_of(const PickleNode& name, const PickleNode& node, const Box& whole,
                            const std::map<Index, const PickleNode*>& places) const {
    DistributedChunk chunk{
        .offsets = box_of(node, "offsets"), .sizes = box_of(node, "sizes"), .file = {}};
    bool inside = chunk.offsets.size() == whole.size() && chunk.sizes.size() == whole.size();
    for (std::size_t d = 0; inside && d < whole.size(); ++d)
      inside = chunk.offsets[d] <= whole[d] && chunk.sizes[d] <= whole[d] - chunk.offsets[d];
    if (!inside)
      refuse(node, fmt::format("a chunk of '{}' [{}] at [{}] is not within [{}]", name.text,
                               fmt::join(chunk.sizes, ", "), fmt::join(chunk.offsets, ", "),
                               fmt::join(whole, ", ")));
    auto place = places.find({name.text, chunk.offsets});
    if (place == places.end() && chunk.sizes == whole)
      place = places.find({name.text, Box()});
    if (place == places.end())
      refuse(node, fmt::format("the chunk of '{}' at [{}] has no storage", name.text,
                               fmt::join(chunk.offsets, ", ")));
    put_in_file(chunk, *place->second);
    if (numbers_in(node, chunk.sizes) > chunk.length)
      refuse(node, fmt::format("a chunk of '{}' [{}] does not fit into its {} bytes", name.text,
                               fmt::join(chunk.sizes, ", "), chunk.length));
    return chunk;
  }

  void put_in_file(DistributedChunk& chunk, const PickleNode& info) const {
    chunk.file = field(info, "relative_path", Kind::Text).text;
    chunk.begin = field(info, "offset", Kind::Integer).integer;
    chunk.length = field(info, "length", Kind::Integer).integer;
    const auto& name = chunk.file;
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos)
      refuse(info, fmt::format("\"{}\" is not a file in the checkpoint's folder", name));
    if (chunk.begin < 0 || chunk.length < 0)
      refuse(info, "the offset or length in a file is negative");
    const PickleNode* const transforms = find_field(info, "transform_descriptors");
    if (transforms != nullptr && !transforms->is(Kind::None) &&
        !(transforms->is(Kind::List) && transforms->items.empty()))
      refuse(info, "its data are compressed or encrypted, which is not supported");
  }

  const std::string& file_;
  plan::Pickled pickled_;
};

}  // namespace

std::map<std::string, DistributedTensor> parse_distributed_metadata(std::string_view bytes,
                                                                    const std::string& file) {
  return MetadataReader(bytes, file).tensors();
}

}  // namespace pipewright::exec
