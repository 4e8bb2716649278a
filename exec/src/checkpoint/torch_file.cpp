#include "pipewright/exec/checkpoint/torch_file.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "checkpoint/torch_names.hpp"
#include "pipewright/exec/checkpoint/mapped_file.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/exported/zip_entries.hpp"
#include "pipewright/plan/pickle/pickle.hpp"

namespace pipewright::exec {
namespace {

using plan::PickleNode;
using Kind = PickleNode::Kind;

constexpr const char *rebuild_tensor = "torch._utils _rebuild_tensor_v2",
                     *rebuild_parameter = "torch._utils _rebuild_parameter";

/// The pickled magic number of files before version 1.6 (torch/serialization.py).
constexpr std::string_view legacy_beginning("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19",
                                            14);

constexpr std::array<std::pair<const char*, at::ScalarType>, 10> storages{{
    {"torch FloatStorage", at::kFloat},
    {"torch HalfStorage", at::kHalf},
    {"torch BFloat16Storage", at::kBFloat16},
    {"torch DoubleStorage", at::kDouble},
    {"torch LongStorage", at::kLong},
    {"torch IntStorage", at::kInt},
    {"torch ShortStorage", at::kShort},
    {"torch CharStorage", at::kChar},
    {"torch ByteStorage", at::kByte},
    {"torch BoolStorage", at::kBool},
}};

std::set<std::string> names_in_files() {
  std::set<std::string> names = plain_torch_names();
  names.insert({rebuild_tensor, rebuild_parameter, "argparse Namespace"});
  for (const auto& [name, type] : storages)
    names.insert(name);
  return names;
}

class TorchFile {
 public:
  TorchFile(at::Tensor bytes, std::int64_t begin, std::int64_t end, const std::string& file)
      : bytes_(std::move(bytes)), begin_(begin), file_(file) {
    const std::string_view archive = text_of(bytes_).substr(static_cast<std::size_t>(begin),
                                                            static_cast<std::size_t>(end - begin));
    if (archive.starts_with(legacy_beginning))
      throw plan::InputError(
          fmt::format("{}: it has the format of torch.save before version 1.6. Write it again: "
                      "`torch.save(torch.load(path), path)`",
                      file_));
    for (plan::ZipEntry& entry : plan::zip_entries(archive, file_))
      entries_.emplace(entry.name, entry);
    const plan::ZipEntry& pickle = find_pickle();
    folder_ = pickle.name.substr(0, pickle.name.size() - std::strlen("data.pkl"));
    require_little_endian(archive);
    pickled_ = plan::parse_pickle(text_in(archive, pickle), where(), names_in_files());
  }

  StateDict tensors() {
    collect(*pickled_.root, "", 0);
    return std::move(tensors_);
  }

 private:
  [[noreturn]] void refuse(const PickleNode& node, const std::string& what) const {
    throw plan::InputError(fmt::format("{}: byte {}: {}", where(), node.offset, what));
  }
  std::string where() const { return file_ + ", data.pkl"; }

  static std::string_view text_in(std::string_view archive, const plan::ZipEntry& entry) {
    return archive.substr(static_cast<std::size_t>(entry.begin),
                          static_cast<std::size_t>(entry.end - entry.begin));
  }

  /// Finds data.pkl. All entries of the archive lie in one folder, whose name is arbitrary.
  const plan::ZipEntry& find_pickle() const {
    for (const auto& [name, entry] : entries_)
      if (name.ends_with("/data.pkl") && name.find('/') == name.size() - std::strlen("/data.pkl"))
        return entry;
    throw plan::InputError(fmt::format(
        "{}: the archive has no data.pkl. Only files of torch.save since version 1.6 can be read",
        file_));
  }

  void require_little_endian(std::string_view archive) const {
    const auto order = entries_.find(folder_ + "byteorder");
    if (order != entries_.end() && text_in(archive, order->second) != "little")
      throw plan::InputError(fmt::format("{}: its byte order is not that of this machine", file_));
  }

  /// Collects the tensors below `node`. Each container is visited once, by the first path to it,
  /// because many paths can lead to one container.
  void collect(const PickleNode& node, const std::string& path, int depth) {
    constexpr int deepest = 64;
    if (node.is_call_of(rebuild_tensor) || node.is_call_of(rebuild_parameter)) {
      tensors_.emplace(path, tensor_of(node, 0));
      return;
    }
    const bool holds = node.is(Kind::List) || node.is(Kind::Dict);
    if (!holds || !seen_.insert(&node).second)
      return;
    if (depth == deepest)
      refuse(node, fmt::format("containers are nested deeper than {}", deepest));
    const auto below_path = [&](const std::string& key) {
      return path.empty() ? key : path + "/" + key;
    };
    if (node.is(Kind::List))
      for (std::size_t at = 0; at < node.items.size(); ++at)
        collect(*node.items[at], below_path(std::to_string(at)), depth + 1);
    else
      for (std::size_t at = 0; at + 1 < node.items.size(); at += 2)
        if (const auto key = key_of(*node.items[at]))
          collect(*node.items[at + 1], below_path(*key), depth + 1);
  }

  static std::optional<std::string> key_of(const PickleNode& node) {
    if (node.is(Kind::Text))
      return node.text;
    return node.is(Kind::Integer) ? std::optional(std::to_string(node.integer)) : std::nullopt;
  }

  /// Builds a tensor from (storage, offset, sizes, strides, requires_grad, hooks), or a parameter
  /// from (tensor, …).
  at::Tensor tensor_of(const PickleNode& node, int depth) const {
    const auto& arguments = node.items[1]->items;
    if (node.is_call_of(rebuild_parameter)) {
      if (arguments.empty() || depth > 0 || !arguments[0]->is_call_of(rebuild_tensor))
        refuse(node, "a parameter has no tensor");
      return tensor_of(*arguments[0], depth + 1);
    }
    if (arguments.size() < 4 || !arguments[0]->is(Kind::Persistent) ||
        !arguments[1]->is(Kind::Integer))
      refuse(node, "a tensor lacks storage, offset, sizes or strides");
    const Storage storage = storage_of(*arguments[0]->items[0]);
    const auto sizes = sizes_of(*arguments[2]), strides = sizes_of(*arguments[3]);
    require_inside(node, storage, arguments[1]->integer, sizes, strides);
    return view_of(storage, arguments[1]->integer, sizes, strides);
  }

  struct Storage {
    at::ScalarType type = at::kFloat;
    std::int64_t begin = 0;  // in bytes_
    std::int64_t numbers = 0;
  };

  /// Finds the storage of ('storage', type, key, device, numbers).
  Storage storage_of(const PickleNode& id) const {
    const auto& items = id.items;
    if (!id.is(Kind::List) || items.size() < 5 || !items[0]->is_text("storage") ||
        !items[1]->is(Kind::Global) || !items[2]->is(Kind::Text) || !items[4]->is(Kind::Integer))
      refuse(id, "a storage lacks type, key or length");
    const auto* const type = std::find_if(storages.begin(), storages.end(), [&](const auto& known) {
      return items[1]->text == known.first;
    });
    if (type == storages.end())
      refuse(id, fmt::format("storage type '{}' is not supported", items[1]->text));
    const auto entry = entries_.find(folder_ + "data/" + items[2]->text);
    if (entry == entries_.end())
      refuse(id, fmt::format("the archive has no storage '{}'", items[2]->text));
    const std::int64_t width = static_cast<std::int64_t>(c10::elementSize(type->second));
    const std::int64_t bytes = entry->second.end - entry->second.begin;
    if (items[4]->integer < 0 || items[4]->integer > bytes / width)
      refuse(id, fmt::format("storage '{}' of {} elements has only {} bytes", items[2]->text,
                             items[4]->integer, bytes));
    return {type->second, begin_ + entry->second.begin, items[4]->integer};
  }

  std::vector<std::int64_t> sizes_of(const PickleNode& list) const {
    std::vector<std::int64_t> sizes;
    for (const PickleNode* const item : list.items) {
      if (!list.is(Kind::List) || !item->is(Kind::Integer) || item->integer < 0)
        refuse(list, "this is not a list of sizes");
      sizes.push_back(item->integer);
    }
    return sizes;
  }

  /// Checks that all elements lie within the storage, and that there are no more of them than it
  /// has.
  void require_inside(const PickleNode& node, const Storage& storage, std::int64_t offset,
                      const std::vector<std::int64_t>& sizes,
                      const std::vector<std::int64_t>& strides) const {
    constexpr std::size_t most_dimensions = 64;
    bool fits = sizes.size() == strides.size() && sizes.size() <= most_dimensions && offset >= 0;
    std::int64_t count = 1, last = offset;
    bool empty = false;
    for (std::size_t d = 0; fits && d < sizes.size(); ++d) {
      empty = empty || sizes[d] == 0;
      std::int64_t step = 0;
      fits = !__builtin_mul_overflow(std::max<std::int64_t>(sizes[d], 1), count, &count) &&
             !__builtin_mul_overflow(std::max<std::int64_t>(sizes[d], 1) - 1, strides[d], &step) &&
             !__builtin_add_overflow(last, step, &last);
    }
    fits = fits && (empty || (last < storage.numbers && count <= storage.numbers));
    fits = fits && (!empty || count <= std::int64_t{1} << 40);
    if (!fits)
      refuse(node, fmt::format("a tensor [{}] with strides [{}] from element {} on exceeds its "
                               "storage of {} elements",
                               fmt::join(sizes, ", "), fmt::join(strides, ", "), offset,
                               storage.numbers));
  }

  at::Tensor view_of(const Storage& storage, std::int64_t offset,
                     const std::vector<std::int64_t>& sizes,
                     const std::vector<std::int64_t>& strides) const {
    if (c10::multiply_integers(sizes) == 0)
      return at::empty(sizes, storage.type);
    const auto width = c10::elementSize(storage.type);
    auto* const numbers = static_cast<char*>(bytes_.data_ptr()) + storage.begin;
    at::Tensor all;
    if (reinterpret_cast<std::uintptr_t>(numbers) % width == 0) {
      all = at::from_blob(
          numbers, {storage.numbers}, [kept = bytes_](void*) {}, at::dtype(storage.type));
    } else {  // torch.save aligns storages to multiples of 64 bytes
      all = at::empty({storage.numbers}, storage.type);
      std::memcpy(all.data_ptr(), numbers, static_cast<std::size_t>(storage.numbers) * width);
    }
    return all.as_strided(sizes, strides, offset);
  }

  at::Tensor bytes_;
  std::int64_t begin_;
  const std::string& file_;
  std::map<std::string, plan::ZipEntry> entries_;
  std::string folder_;  // of the archive, with its "/"
  plan::Pickled pickled_;
  std::set<const PickleNode*> seen_;
  StateDict tensors_;
};

}  // namespace

const std::set<std::string>& plain_torch_names() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all{"collections OrderedDict", "torch Size", "torch device"};
    for (const char* const type :
         {"float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8",
          "bool", "float8_e4m3fn", "float8_e5m2", "strided"})
      all.insert(std::string("torch ") + type);
    return all;
  }();
  return names;
}

StateDict parse_torch_file(const at::Tensor& bytes, std::int64_t begin, std::int64_t end,
                           const std::string& file) {
  if (begin < 0 || end < begin || end > bytes.numel())
    throw plan::InputError(fmt::format("{}: bytes {} to {} were requested, but it has {}", file,
                                       begin, end, bytes.numel()));
  return TorchFile(bytes, begin, end, file).tensors();
}

StateDict read_torch_file(const std::filesystem::path& file) {
  const at::Tensor bytes = mapped(file);
  return parse_torch_file(bytes, 0, bytes.numel(), file.string());
}

StateDict below(const StateDict& tensors, const std::string& key) {
  StateDict found;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with(key + "/"))
      found.emplace(name.substr(key.size() + 1), tensor);
  return found;
}

}  // namespace pipewright::exec
