#!/usr/bin/env bash
# pack.sh BUILD FILE.tar.gz: packs stripped programs, their libraries except LibTorch's, scenarios
# and a launcher. Called by ./dev bundle.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_dir=$here/../..
build=$1 file=$2
programs=(pipewright pipewright-torch pipewright_exec_tests pipewright_profiler_tests
  pipewright_bench_actions pipewright_bench_executor)
most_mb=40

[[ $file == *.tar.gz ]] || { echo "bundle: $file: the name must end with .tar.gz" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bundle=$folder/pipewright-bundle
mkdir -p "$bundle"/{bin,lib,lib-c++,bench,licenses}

for program in "${programs[@]}"; do
  [[ -x $build/bin/$program ]] || { echo "bundle: $build/bin/$program is not built" >&2; exit 2; }
  strip -o "$bundle/bin/$program" "$build/bin/$program"
done

# All libraries that ldd finds outside LibTorch's folder, except the C library, which every machine
# has. The license of each is included.
torch_dir=$(sed -n 's/^PIPEWRIGHT_TORCH_DIR:PATH=//p' "$build/CMakeCache.txt")
python_dir=$(dirname "$torch_dir")
ldd "$bundle"/bin/* | awk '$3 ~ /^\// {print $3}' | sort -u | while read -r library; do
  real=$(readlink -f "$library")
  case $real in
    "$(readlink -f "$python_dir")"/*) continue ;;
  esac
  case $(basename "$library") in
    libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libutil.so.* | libresolv.so.* | ld-linux*) continue ;;
  esac
  # The C++ library needs a newer C library than the programs do. It is used if that exists;
  # otherwise the machine's own is used.
  case $(basename "$library") in
    libstdc++.so.* | libgcc_s.so.*) cp "$real" "$bundle/lib-c++/$(basename "$library")" ;;
    *) cp "$real" "$bundle/lib/$(basename "$library")" ;;
  esac
  package=$(dpkg-query -S "$real" 2>/dev/null | head -n 1 | sed 's/[:,].*//') || true
  if [[ -n $package && -f /usr/share/doc/$package/copyright ]]; then
    cp "/usr/share/doc/$package/copyright" "$bundle/licenses/$package"
  fi
done

# Prints the newest version of the C library that these files need.
glibc_of() { objdump -T "$@" | grep -o 'GLIBC_2[0-9.]*' | sort -Vu | tail -n 1 | sed 's/GLIBC_//'; }
glibc=$(glibc_of "$bundle"/bin/* "$bundle"/lib/*)
torch=$(sed -n "s/^__version__ = '\([0-9.]*\).*/\1/p" "$torch_dir/version.py")
printf 'torch_wanted=%s\nglibc_wanted=%s\nglibc_of_cxx=%s\n' "$torch" "$glibc" \
  "$(glibc_of "$bundle"/lib-c++/*)" >"$bundle/built-with"

cp -r "$source_dir/scenarios" "$bundle/scenarios"
cp "$source_dir/LICENSE" "$bundle/licenses/pipewright"
cp "$source_dir/bench/torch_pipelining.py" "$here/allocator_trace.py" "$bundle/bench/"
mkdir "$bundle/gpu_check"
cp "$here"/gpu_check/*.py "$bundle/gpu_check/"
cp "$here"/{pipewright,gpu-check,libraries.sh,find-torch.sh,README.md} "$bundle/"

mkdir -p "$(dirname "$file")"
tar -C "$folder" --owner=0 --group=0 --sort=name -czf "$file.new" pipewright-bundle
bytes=$(stat -c %s "$file.new")
if ((bytes > most_mb * 1000000)); then
  rm "$file.new"
  echo "bundle: $((bytes / 1000000)) MB, and at most $most_mb MB may be carried" >&2
  exit 1
fi
mv "$file.new" "$file"
echo "$file: $(((bytes + 500000) / 1000000)) MB, for torch $torch and a C library from $glibc on"
