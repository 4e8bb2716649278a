#include "pipewright/exec/checkpoint/list_checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "manifest.hpp"
#include "names.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

namespace fs = std::filesystem;

plan::Bytes size_of(const fs::path& folder) {
  plan::Bytes size;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error))
    if (const auto bytes = file->file_size(error); !error)
      size += plan::Bytes{static_cast<std::int64_t>(bytes)};
  return size;
}

/// Returns why a checkpoint is unusable, judging by its manifest and its files' sizes. Empty for a
/// usable one.
std::string damage_of(const fs::path& folder, const StepFolder& said) {
  if (!said.job.empty())
    return fmt::format("{}: incomplete: its job ended while it was written", folder.string());
  std::error_code unreadable;
  if (!fs::exists(folder / manifest_name, unreadable) && !unreadable)
    return fmt::format("{}: incomplete: it has no {}", folder.string(), manifest_name);
  try {
    const auto found = Checkpoint::open(folder).training().step;
    if (found != said.step)
      return fmt::format("{}: damaged: it holds step {}", folder.string(), found);
  } catch (const plan::InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

std::vector<CheckpointInfo> list_checkpoints(const fs::path& folder) {
  std::vector<CheckpointInfo> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto said = parse_step_name(entry->path().filename().string());
    if (said)
      found.push_back({.folder = entry->path(),
                       .step = said->step,
                       .size = size_of(entry->path()),
                       .damage = damage_of(entry->path(), *said),
                       .was_complete = said->job.empty() || said->is_retired()});
  }
  std::sort(found.begin(), found.end(), [](const CheckpointInfo& a, const CheckpointInfo& b) {
    return std::pair(b.step, b.folder) < std::pair(a.step, a.folder);
  });
  return found;
}

int newest_step(const fs::path& folder) {
  for (const CheckpointInfo& found : list_checkpoints(folder))
    if (found.damage.empty())
      return static_cast<int>(found.step);
  return 0;
}

Checkpoint open_newest(const fs::path& folder,
                       const std::function<void(const std::string&)>& report) {
  for (const CheckpointInfo& info : list_checkpoints(folder)) {
    if (!info.damage.empty()) {
      report(info.damage);
      continue;
    }
    try {
      Checkpoint checkpoint = Checkpoint::open(info.folder);
      checkpoint.verify();
      return checkpoint;
    } catch (const plan::InputError& error) {
      report(error.what());
    }
  }
  throw plan::InputError(fmt::format("{}: contains no complete checkpoint", folder.string()));
}

}  // namespace pipewright::exec
