# Sourced by the other scripts: installs what is missing, configures, builds. Debian and Ubuntu.
# Sets `root` (the repository) and changes into it.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# ocl-icd-opencl-dev: Debian 12's description of oneDNN asks for it, though nothing here uses OpenCL.
packages=(g++ cmake ninja-build openmpi-bin libopenmpi-dev libdnnl-dev catch2 libcli11-dev libtomlplusplus-dev
          nlohmann-json3-dev zlib1g-dev libzip-dev libxxhash-dev libjpeg-dev libpng-dev libhdf5-dev libonnx-dev libprotobuf-dev
          ocl-icd-opencl-dev)

install_packages() { # install_packages NAME…: says what it is about to do, asks for root by sudo
  local missing=() name
  for name in "$@"; do
    [[ $(dpkg-query -W -f '${Status}' "$name" 2>/dev/null) == "install ok installed" ]] || missing+=("$name")
  done
  ((${#missing[@]})) || return 0
  command -v apt-get >/dev/null || { echo "ronda: error: needs ${missing[*]}, and there is no apt-get to install them with" >&2; exit 1; }
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || { echo "ronda: error: needs ${missing[*]}; install them as root: apt-get install ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  echo "ronda: installing with apt: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# g++ spends a seventh of its time looking for memory to free. With 4 GB for each process of the build it need not: the largest
# source takes 2 GB.
compiler_memory() {
  local memory
  memory=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
  (($(nproc) * 4000 + 8000 > memory)) || ${CXX:-c++} --version | grep -q clang || echo --param=ggc-min-heapsize=4000000
}

build() { # build PRESET [TARGET]: into build/PRESET; builds nothing that is up to date
  local preset=$1 target=${2:-all}
  if [[ ! -f build/$preset/build.ninja ]]; then
    echo "ronda: configuring build/$preset"
    CXXFLAGS="$(compiler_memory) ${CXXFLAGS:-}" cmake --preset "$preset" >"/tmp/ronda-configure.$$" || { cat "/tmp/ronda-configure.$$" >&2; exit 1; }
    rm -f "/tmp/ronda-configure.$$"
  fi
  cmake --build --preset "$preset" --target "$target"
}

# Open MPI refuses root and more ranks than cores; in a container both are usual. 4.1 and 5 have different names.
allow_root_and_few_cores() {
  if ((EUID == 0)); then
    echo "ronda: running as root, which Open MPI has to be told is meant (OMPI_ALLOW_RUN_AS_ROOT)"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  fi
  if (($(nproc) < ${1:-2})); then
    echo "ronda: more ranks than cores, which Open MPI has to be told is meant (oversubscription)"
    export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
  fi
  # One host needs no network. Open MPI 5 has warnings, once a rank, about some, and 4.1 sleeps for a second to close ofi.
  export OMPI_MCA_btl=^tcp,ofi
}
