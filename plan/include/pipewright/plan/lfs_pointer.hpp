#pragma once

// Git LFS stores a large file outside the repository. A clone without the `git lfs` program has a
// short text, the pointer, in place of each such file.

#include <string>
#include <string_view>

namespace pipewright::plan {

/// Throws InputError that names `file` if its contents, or their beginning, are a Git LFS pointer.
void reject_lfs_pointer(std::string_view contents, const std::string& file);

}  // namespace pipewright::plan
