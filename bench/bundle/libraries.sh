# Sourced with $bundle set: lets the bundle's programs find its libraries.
. "$bundle/built-with"
glibc_found=$(getconf GNU_LIBC_VERSION | sed 's/.* //')
# Whether the C library is this version or a later one.
has_glibc() { [ "$(printf '%s\n%s\n' "$glibc_found" "$1" | sort -V | head -n 1)" = "$1" ]; }
if ! has_glibc "$glibc_wanted"; then
  echo "this machine's C library is $glibc_found, and the programs need $glibc_wanted: build the bundle on an older system" >&2
  exit 2
fi
LD_LIBRARY_PATH="$bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
if has_glibc "$glibc_of_cxx"; then LD_LIBRARY_PATH="$bundle/lib-c++:$LD_LIBRARY_PATH"; fi
export LD_LIBRARY_PATH
