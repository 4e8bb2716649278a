#include "checkpoint/retention.hpp"

#include "checkpoint/names.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/durable_file.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"

namespace pipewright::exec {
namespace {

namespace fs = std::filesystem;

void retire(const fs::path& checkpoint, std::int64_t step, const std::string& job) {
  const fs::path aside = checkpoint.parent_path() / unfinished_name(step, retired_job(job));
  if (::rename(checkpoint.c_str(), aside.c_str()) != 0)
    throw_disk_error(checkpoint, "removed");
  fs::remove_all(aside);
}

bool is_unfinished(const fs::path& checkpoint) {
  return !parse_step_name(checkpoint.filename().string())->job.empty();
}

}  // namespace

void remove_left_overs(const fs::path& folder, const std::string& job, std::int64_t step) {
  for (const CheckpointInfo& info : list_checkpoints(folder)) {
    if (!is_unfinished(info.folder))
      continue;
    if (info.step < step || info.folder.filename() != unfinished_name(info.step, job))
      fs::remove_all(info.folder);
  }
}

void remove_older(const fs::path& folder, const std::string& job, std::int64_t step, int keep) {
  int whole = 1;  // the checkpoint of this step
  for (const CheckpointInfo& info : list_checkpoints(folder)) {
    if (info.step >= step || is_unfinished(info.folder))
      continue;
    if (whole >= keep)
      retire(info.folder, info.step, job);
    else if (info.damage.empty())
      ++whole;
  }
}

}  // namespace pipewright::exec
