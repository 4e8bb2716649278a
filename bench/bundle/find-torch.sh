# Sourced after libraries.sh: finds LibTorch and lets the bundle's programs find it. Sets
# $torch_dir. Searches $PIPEWRIGHT_TORCH_DIR, then the Pythons of the active environment and of
# PATH.

# Prints the folder `torch` of a Python that has it.
torch_of() {
  "$1" -c 'import importlib.util as u; s = u.find_spec("torch"); print(s.submodule_search_locations[0] if s else "")' \
    2>/dev/null || true
}

# Prints why a folder is not the LibTorch that the programs were built for; nothing if it is.
unfit() {
  if [ ! -e "$1/lib/libtorch_cpu.so" ]; then
    echo "has no lib/libtorch_cpu.so"
  elif [ -e "$1/version.py" ]; then
    found=$(sed -n "s/^__version__ = '\(.*\)'/\1/p" "$1/version.py")
    [ "${found%%+*}" = "$torch_wanted" ] || echo "is version $found"
  elif [ -e "$1/build-version" ]; then  # a LibTorch without Python
    found=$(cat "$1/build-version")
    [ "${found%%+*}" = "$torch_wanted" ] || echo "is version $found"
  fi
}

torch_dir='' refused=''
if [ -n "${PIPEWRIGHT_TORCH_DIR:-}" ]; then
  why=$(unfit "$PIPEWRIGHT_TORCH_DIR")
  if [ -n "$why" ]; then
    echo "PIPEWRIGHT_TORCH_DIR: $PIPEWRIGHT_TORCH_DIR $why; LibTorch $torch_wanted is needed" >&2
    exit 2
  fi
  torch_dir=$PIPEWRIGHT_TORCH_DIR
else
  for python in ${VIRTUAL_ENV:+"$VIRTUAL_ENV/bin/python"} ${CONDA_PREFIX:+"$CONDA_PREFIX/bin/python"} python3 python; do
    command -v "$python" >/dev/null || continue
    candidate=$(torch_of "$python")
    [ -n "$candidate" ] || continue
    why=$(unfit "$candidate")
    if [ -z "$why" ]; then
      torch_dir=$candidate
      break
    fi
    refused="$refused; $candidate $why"
  done
fi
if [ -z "$torch_dir" ]; then
  echo "LibTorch $torch_wanted was not found: pip install torch==$torch_wanted, activate the environment" \
    "that has it, or set PIPEWRIGHT_TORCH_DIR to its folder torch$refused" >&2
  exit 2
fi

# A conda environment has its own C++ library, with which its LibTorch was built.
case $torch_dir in
  "${CONDA_PREFIX:-/nonexistent}"/*) library_path_before=$CONDA_PREFIX/lib${library_path_before:+:$library_path_before} ;;
esac
search_in "$torch_dir/lib"
