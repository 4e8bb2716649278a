#include "pipewright/plan/lfs_pointer.hpp"

#include <fmt/format.h>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {

void reject_lfs_pointer(std::string_view contents, const std::string& file) {
  // The first line that the specification requires (git-lfs, docs/spec.md).
  if (contents.starts_with("version https://git-lfs.github.com/spec/"))
    throw InputError(fmt::format(
        "{}: this is a Git LFS pointer, not the file itself. Run `git lfs pull` in its repository",
        file));
}

}  // namespace pipewright::plan
