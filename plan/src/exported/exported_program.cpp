#include "pipewright/plan/exported/exported_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "exported/graph_reader.hpp"
#include "mapping.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/exported/zip_entries.hpp"

namespace pipewright::plan {
namespace {

struct DtypeSize {
  const char* dtype;
  int bytes;
};
constexpr std::array dtype_sizes{DtypeSize{"float32", 4},  DtypeSize{"int64", 8},
                                 DtypeSize{"bool", 1},     DtypeSize{"float16", 2},
                                 DtypeSize{"bfloat16", 2}, DtypeSize{"float64", 8},
                                 DtypeSize{"uint8", 1},    DtypeSize{"int8", 1},
                                 DtypeSize{"int16", 2},    DtypeSize{"int32", 4}};

/// The files of the archive, by name. All lie in one folder, which is not part of the names.
class Archive {
 public:
  Archive(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {
    for (ZipEntry& entry : zip_entries(bytes, file)) {
      const std::size_t folder = entry.name.find('/');
      entries_.emplace(entry.name.substr(folder == std::string::npos ? 0 : folder + 1), entry);
    }
  }

  const ZipEntry* find(const std::string& name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
  }
  const ZipEntry& entry(const std::string& name) const {
    const ZipEntry* const found = find(name);
    if (found == nullptr)
      throw InputError(fmt::format(
          "{}: there is no {} in it; torch.export.save of torch 2.9 or later writes one", file_,
          name));
    return *found;
  }
  Json json(const std::string& name) const {
    const ZipEntry& found = entry(name);
    const std::string_view text = bytes_.substr(static_cast<std::size_t>(found.begin),
                                                static_cast<std::size_t>(found.end - found.begin));
    Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded())
      throw InputError(fmt::format("{}: {} in it is not JSON", file_, name));
    return json;
  }

 private:
  std::string_view bytes_;
  const std::string& file_;
  std::map<std::string, ZipEntry> entries_;
};

/// The places of the weights in the archive, from its two lists.
class WeightPlaces {
 public:
  WeightPlaces(const Archive& archive, const std::string& file) : archive_(archive), file_(file) {
    add("data/weights/", "model_weights_config.json");
    add("data/constants/", "model_constants_config.json");
  }

  void place(ExportedWeight& weight, const ExportedTensor& tensor) const {
    const auto found = places_.find(weight.name);
    if (found == places_.end())
      refuse(weight, "its numbers are not in the file");
    const Json& said = found->second.said;
    if (said.value("use_pickle", false))
      refuse(weight, "its numbers are pickled, which is not supported: use a plain tensor");
    const ZipEntry& entry = archive_.entry(found->second.folder + said.value("path_name", ""));
    weight.begin = entry.begin;
    weight.end = entry.end;
    const GraphReader reader(file_);
    const Json& meta = reader.object(said, "tensor_meta", weight.name);
    weight.strides = reader.lengths(meta, "strides", weight.name);
    weight.offset = reader.length(reader.member(meta, "storage_offset", weight.name), weight.name);
    if (reader.tensor(weight.name, meta).dtype != tensor.dtype ||
        reader.lengths(meta, "sizes", weight.name) != tensor.sizes)
      refuse(weight, "its numbers are of another type or size than the graph says");
    if (weight.strides.size() != tensor.sizes.size() || !lies_within(weight, tensor))
      refuse(weight, "its numbers lie outside of its memory");
  }

 private:
  struct Place {
    std::string folder;
    Json said;
  };

  void add(const std::string& folder, const std::string& list) {
    if (archive_.find(folder + list) == nullptr)
      return;
    const Json json = archive_.json(folder + list);
    if (!json.is_object() || !json.contains("config") || !json["config"].is_object())
      throw InputError(fmt::format("{}: {} has no \"config\"", file_, folder + list));
    for (const auto& [name, said] : json["config"].items())
      if (said.is_object() && said.contains("path_name") && said["path_name"].is_string())
        places_.insert_or_assign(name, Place{folder, said});
  }

  static bool lies_within(const ExportedWeight& weight, const ExportedTensor& tensor) {
    const std::int64_t numbers = (weight.end - weight.begin) / bytes_of_dtype(tensor.dtype);
    std::int64_t last = weight.offset;
    if (last < 0 || last > numbers)
      return false;
    if (count_of(tensor) == 0)
      return true;
    for (std::size_t d = 0; d < tensor.sizes.size(); ++d) {
      const std::int64_t steps = tensor.sizes[d] - 1;
      if (weight.strides[d] < 0 || (steps > 0 && weight.strides[d] > (numbers - last) / steps))
        return false;
      last += steps * weight.strides[d];
    }
    return last < numbers;
  }

  [[noreturn]] void refuse(const ExportedWeight& weight, const char* what) const {
    throw InputError(fmt::format("{}: {}: {}", file_, weight.name, what));
  }

  const Archive& archive_;
  const std::string& file_;
  std::map<std::string, Place> places_;
};

/// Returns how many of the last inputs are targets, which `pipewright.torch.export` writes to the
/// archive.
std::size_t targets_of(const Archive& archive, const std::string& name) {
  const std::string own = "extra/pipewright.json";
  if (archive.find(own) == nullptr)
    return 0;
  const Json json = archive.json(own);
  const Json targets = json.is_object() ? json.value("targets", Json()) : Json();
  if (!targets.is_number_unsigned() || targets > 1000)
    throw InputError(fmt::format("{}: {}: \"targets\" has to say how many there are", name, own));
  return targets.get<std::size_t>();
}

}  // namespace

int bytes_of_dtype(const std::string& dtype) {
  const auto found =
      std::ranges::find_if(dtype_sizes, [&](const DtypeSize& each) { return each.dtype == dtype; });
  return found == dtype_sizes.end() ? 0 : found->bytes;
}

std::int64_t count_of(const ExportedTensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.sizes)
    count *= size;
  return count;
}

std::int64_t bytes_of(const ExportedTensor& tensor) {
  return count_of(tensor) * bytes_of_dtype(tensor.dtype);
}

ExportedProgram exported_from_bytes(std::string_view bytes, const std::string& name) {
  const Archive archive(bytes, name);
  ExportedProgram program = GraphReader(name).read(archive.json("models/model.json"));
  const std::size_t targets = targets_of(archive, name);
  if (targets >= program.inputs.size() && targets > 0)
    throw InputError(fmt::format("{}: {} targets of {} inputs: nothing is left to compute with",
                                 name, targets, program.inputs.size()));
  const auto border = program.inputs.end() - static_cast<std::ptrdiff_t>(targets);
  program.targets.assign(border, program.inputs.end());
  program.inputs.erase(border, program.inputs.end());
  const WeightPlaces places(archive, name);
  for (ExportedWeight& weight : program.weights)
    places.place(weight, program.values[static_cast<std::size_t>(weight.value)]);
  return program;
}

ExportedProgram read_exported(const std::filesystem::path& file) {
  return exported_from_bytes(Mapping(file).text(), file.string());
}

}  // namespace pipewright::plan
