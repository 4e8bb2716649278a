#include "cupti/kept_buffers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::profiler {

std::unique_ptr<KeptBuffers> KeptBuffers::from_environment(std::uint32_t version) {
  const char* const folder = std::getenv("PIPEWRIGHT_KEEP_CUPTI");
  if (folder == nullptr || *folder == '\0')
    return nullptr;
  std::error_code error;
  const bool is_first = std::filesystem::create_directory(folder, error);
  if (error)
    throw plan::InputError(fmt::format("PIPEWRIGHT_KEEP_CUPTI={}: the folder cannot be created: {}",
                                       folder, error.message()));
  return is_first ? std::make_unique<KeptBuffers>(folder, version) : nullptr;
}

KeptBuffers::KeptBuffers(std::filesystem::path folder, std::uint32_t version)
    : folder_(std::move(folder)), version_(version) {}

void KeptBuffers::opened(std::uint64_t label, Nanoseconds now) {
  const std::lock_guard lock(mutex_);
  if (left_out_ > 0)
    return;  // their records are not stored
  labels_.push_back({label, static_cast<std::uint64_t>(gettid()), now, now});
}

void KeptBuffers::closed(std::uint64_t label, Nanoseconds now) {
  const std::lock_guard lock(mutex_);
  const auto own = std::find_if(labels_.rbegin(), labels_.rend(),
                                [&](const Label& each) { return each.label == label; });
  if (own != labels_.rend())
    own->end = now;
}

void KeptBuffers::add(ActivityBytes buffer, const std::vector<std::size_t>& begins) {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> fitting;
  std::size_t size = 0;
  for (std::size_t r = 0; r < begins.size(); ++r) {
    const std::size_t end = r + 1 < begins.size() ? begins[r + 1] : buffer.size();
    if (kept_ + end > most_bytes)
      break;
    fitting.push_back(begins[r]);
    size = end;
  }
  left_out_ += buffer.size() - size;
  if (fitting.empty())
    return;
  kept_ += size;
  const std::string file = fmt::format("{}.buffer", buffers_.size() + 1);
  std::ofstream(folder_ / file, std::ios::binary)
      .write(reinterpret_cast<const char*>(buffer.data()), static_cast<std::streamsize>(size));
  keep_names(buffer, fitting);
  buffers_.push_back({collection_, file, size, std::move(fitting)});
}

void KeptBuffers::keep_names(ActivityBytes buffer, const std::vector<std::size_t>& begins) {
  RecordNames names;
  Activity unused;
  const NameReader keep = [&](const char* name) {
    if (name != nullptr)
      names_.emplace(reinterpret_cast<std::uintptr_t>(name), name);
    return 0U;
  };
  append_records(
      buffer, begins, names, keep, [](bool, std::uint32_t) { return std::string(); }, unused);
}

void KeptBuffers::end_collection() {
  const std::lock_guard lock(mutex_);
  plan::Json buffers = plan::Json::array();
  for (const Buffer& buffer : buffers_)
    buffers.push_back({{"collection", buffer.collection},
                       {"file", buffer.file},
                       {"size", buffer.size},
                       {"begins", buffer.begins}});
  plan::Json names = plan::Json::array();
  for (const auto& [place, name] : names_)
    names.push_back({{"place", place}, {"name", name}});
  plan::Json labels = plan::Json::array();
  for (const Label& each : labels_)
    labels.push_back({{"label", each.label},
                      {"thread", each.thread},
                      {"begin_ns", each.begin},
                      {"end_ns", each.end}});
  std::ofstream(folder_ / "cupti.json") << plan::Json{{"format", "pipewright/cupti-buffers/1"},
                                                      {"cupti", version_},
                                                      {"buffers", std::move(buffers)},
                                                      {"names", std::move(names)},
                                                      {"labels", std::move(labels)},
                                                      {"left_out", left_out_}}
                                               .dump()
                                        << '\n';
  ++collection_;
}

}  // namespace pipewright::profiler
