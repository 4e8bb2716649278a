#include "checkpoint/publish.hpp"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>

#include "checkpoint/names.hpp"
#include "checkpoint/retention.hpp"
#include "checkpoint/stored_files.hpp"
#include "pipewright/exec/checkpoint/durable_file.hpp"

namespace pipewright::exec {
namespace {

namespace fs = std::filesystem;

/// Replaces `to` by `from` on file systems that cannot exchange two names. For a moment nothing has
/// the name `to`, and the previous checkpoint is the newest.
void take_name_in_turn(const fs::path& from, const fs::path& to, const fs::path& aside) {
  if (::rename(to.c_str(), aside.c_str()) != 0)
    throw_disk_error(to, "replaced");
  if (::rename(from.c_str(), to.c_str()) != 0) {
    const int why = errno;
    ::rename(aside.c_str(), to.c_str());
    errno = why;
    throw_disk_error(to, "replaced");
  }
}

/// Gives `from` the name `to`. A checkpoint that already has this name is of the same step and
/// either damaged or trained again; it exchanges its name with `from` atomically.
void take_name(const fs::path& from, const fs::path& to, const fs::path& aside) {
  if (::rename(from.c_str(), to.c_str()) == 0)
    return;
  if (errno != ENOTEMPTY && errno != EEXIST)
    throw_disk_error(to, "put in place");
  const bool exchanged =
      ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0;
  if (!exchanged)
    take_name_in_turn(from, to, aside);
  std::error_code ignored;  // the next save removes what remains
  fs::remove_all(exchanged ? from : aside, ignored);
}

}  // namespace

void publish(const fs::path& folder, const Manifest& manifest, int parts) {
  const std::int64_t step = manifest.training.step;
  const fs::path unfinished = folder / unfinished_name(step, manifest.job);
  require_files(unfinished, manifest);
  const std::string text = manifest_text(manifest);
  parse_manifest(text, unfinished / manifest_name);  // a manifest that cannot be read back is an
                                                     // error
  write_durably(unfinished / manifest_name, text);
  for (int part = 1; part < parts; ++part)
    fs::remove(unfinished / part_name(part));
  sync_folder(unfinished);
  take_name(unfinished, folder / step_name(step),
            folder / unfinished_name(step, retired_job(manifest.job)));
  sync_folder(folder);
}

}  // namespace pipewright::exec
