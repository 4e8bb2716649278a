#include "played.hpp"

#include <cupti.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

namespace pipewright::standin {
namespace {

/// Points kernels' names to the loaded names, in place of the addresses from the time of recording.
void point_to(const std::map<std::uint64_t, const char*>& names, PlayedBuffer& buffer) {
  for (std::size_t b = 0; b < buffer.begins.size(); ++b) {
    std::uint8_t* const record = buffer.bytes.data() + buffer.begins[b];
    std::uint32_t kind = 0;
    std::memcpy(&kind, record, sizeof kind);
    if (kind != CUPTI_ACTIVITY_KIND_KERNEL && kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
      continue;
    std::uint64_t kept = 0;
    std::uint8_t* const place = record + offsetof(CUpti_ActivityKernel10, name);
    std::memcpy(&kept, place, sizeof kept);
    const auto found = names.find(kept);
    const char* const name = found == names.end() ? nullptr : found->second;
    std::memcpy(place, &name, sizeof(const char*));
  }
}

Played read(const std::string& folder) {
  const auto kept = nlohmann::json::parse(std::ifstream(folder + "/cupti.json"));
  Played played;
  std::map<std::uint64_t, const char*> names;
  for (const auto& name : kept.at("names"))
    names[name.at("place")] = played.names.emplace_back(name.at("name")).c_str();
  for (const auto& each : kept.at("buffers")) {
    PlayedBuffer& buffer = played.buffers.emplace_back();
    buffer.collection = each.at("collection");
    each.at("begins").get_to(buffer.begins);
    std::ifstream file(folder + "/" + each.at("file").get<std::string>(), std::ios::binary);
    buffer.bytes.assign(std::istreambuf_iterator<char>(file), {});
    if (buffer.bytes.size() != each.at("size"))
      throw std::runtime_error(each.at("file").get<std::string>() + " has another size");
    point_to(names, buffer);
  }
  return played;
}

}  // namespace

Played played_from(const std::string& folder) {
  try {
    return read(folder);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the stand-in for CUPTI cannot play %s: %s\n", folder.c_str(),
                 error.what());
    std::abort();
  }
}

}  // namespace pipewright::standin
