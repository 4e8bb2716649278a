# Sourced with $bundle set: lets the bundle's programs find its libraries.
. "$bundle/built-with"
glibc_found=$(getconf GNU_LIBC_VERSION | sed 's/.* //')
# Returns true if the second version is the first one or a later one.
is_at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }
if ! is_at_least "$glibc_wanted" "$glibc_found"; then
  echo "this machine's C library is $glibc_found, and the programs need $glibc_wanted: build the bundle on an older system" >&2
  exit 2
fi

# Prints the newest symbol version of the C++ library in a folder; nothing if there is no such
# library.
cxx_of() { grep -aos 'GLIBCXX_3\.4\.[0-9][0-9]*' "$1/libstdc++.so.6" | sort -Vu | tail -n 1; }
# Prints that of the first folder that has one, which is where the loader stops searching.
first_cxx() {
  for cxx_folder; do
    cxx_version=$(cxx_of "$cxx_folder")
    [ -z "$cxx_version" ] || { echo "$cxx_version"; return; }
  done
}
# Prints the folder of the system's own C++ library.
system_cxx() {
  PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null |
    sed -n 's|.*libstdc++\.so\.6 (libc6,x86-64.*=> \(.*\)/libstdc++\.so\.6$|\1|p' | head -n 1
}

# search_in FOLDER: sets LD_LIBRARY_PATH to this folder (LibTorch's), the bundle's and the caller's.
# An older C++ library in front of a newer one would lack symbols that other libraries need. So the
# bundled one comes first if it is the newest, and otherwise is not used at all. It needs a newer C
# library than the programs do; if that is missing, the machine's own C++ library is used.
library_path_before=${LD_LIBRARY_PATH:-}
search_in() {
  theirs=$(IFS=: && set -f && first_cxx $1 $library_path_before "$(system_cxx)")
  LD_LIBRARY_PATH=$1${1:+:}$bundle/lib${library_path_before:+:$library_path_before}
  ours=$(cxx_of "$bundle/lib-c++")
  if is_at_least "$glibc_of_cxx" "$glibc_found" && [ "$ours" != "$theirs" ] && is_at_least "$theirs" "$ours"; then
    LD_LIBRARY_PATH=$bundle/lib-c++:$LD_LIBRARY_PATH
  fi
  export LD_LIBRARY_PATH
}
search_in ''
