#!/usr/bin/env bash
# Everything that Ronda is built with and a machine with a GPU may lack, in one folder to carry there: an Open MPI that runs
# from any place, oneDNN, and the headers of CLI11, toml++, nlohmann-json, xxHash, zlib, libzip, Catch2 and cudnn-frontend.
#   scripts/gpu_bundle.sh [DEST]      build/gpu-bundle unless given, and DEST.tar.gz of less than 60 MiB
# Made on Debian 12 or newer, from its packages; needs apt-get, dpkg, pip and a network here. There: bash, a C library that
# is not older, a C++ compiler, CMake, and for GPUs CUDA with cuDNN and NCCL. `. DEST/env.sh` sets what is needed, and
# scripts/gpu_check.sh does that by itself.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dest=${1:-build/gpu-bundle}
most=60 # MiB

fail() {
  echo "ronda: error: $*" >&2
  exit 2
}
[[ $# -le 1 && ${1:-} != -* ]] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; [[ ${1:-} == --help ]] && exit 0 || exit 2; }
[[ ! -e $dest ]] || fail "$dest is there; remove it to make it anew"
command -v apt-get >/dev/null && command -v dpkg >/dev/null || fail "needs apt-get and dpkg (Debian)"

packages=(openmpi-bin openmpi-common libopenmpi3 libopenmpi-dev libpmix2 libhwloc15 libevent-core-2.1-7
          libevent-pthreads-2.1-7 libmunge2 libudev1 zlib1g zlib1g-dev libzip4 libzip-dev libbz2-1.0 libssl3 libdnnl2
          libdnnl-dev ocl-icd-libopencl1 libgomp1 catch2 libcli11-dev libtomlplusplus-dev nlohmann-json3-dev
          libxxhash-dev ninja-build)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # apt downloads as a user of its own
echo "ronda: fetching ${#packages[@]} packages"
(cd "$work" && apt-get -qq download "${packages[@]}" 2>"$work/apt.err") ||
  fail "apt-get download: $(tail -1 "$work/apt.err"); these are Debian 12's names, and apt-get update may be due"
for package in "$work"/*.deb; do dpkg -x "$package" "$work/root"; done
scripts/fetch_cudnn_frontend.sh

triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo x86_64-linux-gnu)
libraries=$work/root/usr/lib/$triplet
includes=$work/root/usr/include
mkdir -p "$dest"/{bin,lib/cmake/dnnl,include,share,etc/openmpi,fallback}
dest=$(cd "$dest" && pwd)

mkdir "$dest/tools" # last in PATH: used only where it is missing
cp -a "$work/root/usr/bin/ninja" "$dest/tools/"

# Open MPI as one flat prefix: OPAL_PREFIX and its relatives name it (see env.sh).
cp -a "$work"/root/usr/bin/{orterun,orted,ompi_info,opal_wrapper} "$dest/bin/"
for name in mpirun mpiexec; do ln -s orterun "$dest/bin/$name"; done
for name in mpicc mpicxx mpic++; do ln -s opal_wrapper "$dest/bin/$name"; done
cp -a "$work/root/usr/share/openmpi" "$dest/share/"
cp -a "$libraries"/openmpi/include/{mpi.h,mpi-ext.h,mpi_portable_platform.h} "$dest/include/" # what mpi.h reaches
mkdir -p "$dest/include/openmpi/ompi/mpi"
cp -a "$libraries/openmpi/include/openmpi/mpiext" "$dest/include/openmpi/"
cp -a "$libraries/openmpi/include/openmpi/ompi/mpi/cxx" "$dest/include/openmpi/ompi/mpi/"
cp -a "$libraries/openmpi/lib/openmpi3" "$dest/lib/"
for library in libmpi.so.40 libmpi_cxx.so.40 libopen-rte.so.40 libopen-pal.so.40 libmca_common_sm.so.40 \
               libmca_common_ompio.so.41 libmca_common_dstore.so.1; do
  for from in "$libraries/$library" "$libraries/openmpi/lib/$library"; do # Debian keeps links between the two
    [[ ! -e $from ]] || { cp -L "$from" "$dest/lib/$library"; break; }
  done
done
for library in libmpi libmpi_cxx libopen-rte libopen-pal; do ln -s "$library.so.40" "$dest/lib/$library.so"; done
for library in libhwloc.so.15 libevent_core-2.1.so.7 libevent_pthreads-2.1.so.7 libmunge.so.2; do
  cp -L "$libraries/$library" "$dest/lib/$library"
done
cp -L "$libraries/pmix2/lib/libpmix.so.2" "$dest/lib/libpmix.so.2"
mkdir -p "$dest/lib/pmix" "$dest/share/pmix"
cp -a "$libraries/pmix2/lib/pmix/pmix_mca_pcompress_zlib.so" "$dest/lib/pmix/"
cp -a "$libraries/pmix2/share/pmix/." "$dest/share/pmix/"
# Networks, schedulers and OpenSHMEM: not for one machine, and they want libraries of their own.
(cd "$dest/lib/openmpi3" && rm -f mca_btl_ofi.so mca_btl_openib.so mca_mtl_*.so mca_pml_cm.so mca_pml_ucx.so \
  mca_osc_ucx.so mca_atomic_*.so mca_memheap_*.so mca_scoll_*.so mca_spml_*.so mca_sshmem_*.so mca_reachable_netlink.so \
  mca_*_slurm.so mca_*_gridengine.so mca_*_flux.so mca_schizo_jsm.so mca_*_monitoring.so mca_ras_simulator.so \
  mca_odls_pspawn.so mca_crs_none.so libompi_dbg_msgq.so)

cp -L "$libraries/libdnnl.so.2" "$dest/lib/libdnnl.so.2"
ln -s libdnnl.so.2 "$dest/lib/libdnnl.so"
cp -L "$libraries/libOpenCL.so.1" "$dest/lib/"
cp -a "$includes"/dnnl* "$includes/oneapi" "$dest/include/"
rm -rf "$dest"/include/{dnnl_sycl.hpp,oneapi/dnnl/dnnl_sycl*}
cat >"$dest/lib/cmake/dnnl/dnnl-config.cmake" <<'CMAKE' # Debian's own asks for OpenCL's headers
get_filename_component(_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl SHARED IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION "${_prefix}/lib/libdnnl.so.2"
                                              INTERFACE_INCLUDE_DIRECTORIES "${_prefix}/include")
endif()
CMAKE

cp -a "$includes"/{CLI,toml++,nlohmann,catch2,xxhash.h,xxh3.h,zlib.h,zconf.h,zip.h,zipconf.h} "$dest/include/"
mkdir -p "$dest/share/cmake"
cp -a "$work"/root/usr/share/cmake/{CLI11,nlohmann_json} "$dest/share/cmake/"
cp -a "$work/root/usr/lib/cmake/Catch2" "$dest/lib/cmake/"
find "$work/root" -name 'libCatch2*.a' -exec cp -t "$dest/lib" {} +
mkdir -p "$dest/zlib/lib" # apart, so that no other program there is given it
ln -s libz.so.1 "$dest/zlib/lib/libz.so"
cp -L "$work/root/lib/$triplet/libz.so.1" "$dest/zlib/lib/" 2>/dev/null || cp -L "$libraries/libz.so.1" "$dest/zlib/lib/"
ln -s libzip.so.4 "$dest/zlib/lib/libzip.so"
cp -L "$libraries/libzip.so.4" "$dest/zlib/lib/"
cp -a build/cudnn-frontend/include/. "$dest/include/"

# Nearly every machine has these, and in a newer version: used only where they are missing.
for library in libudev.so.1 libgomp.so.1 libbz2.so.1.0 libcrypto.so.3; do
  cp -L "$work/root/lib/$triplet/$library" "$dest/fallback/" 2>/dev/null || cp -L "$libraries/$library" "$dest/fallback/"
done
find "$dest" -name '*.so*' -type f -exec strip --strip-unneeded {} + 2>/dev/null || true

cat >"$dest/env.sh" <<'ENV'
# Source this; it finds itself.
ronda_bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export OPAL_PREFIX=$ronda_bundle OPAL_EXEC_PREFIX=$ronda_bundle OPAL_BINDIR=$ronda_bundle/bin
export OPAL_LIBDIR=$ronda_bundle/lib OPAL_PKGLIBDIR=$ronda_bundle/lib/openmpi3
export OPAL_DATADIR=$ronda_bundle/share OPAL_PKGDATADIR=$ronda_bundle/share/openmpi
export OPAL_SYSCONFDIR=$ronda_bundle/etc/openmpi OPAL_INCLUDEDIR=$ronda_bundle/include
export OPAL_PKGINCLUDEDIR=$ronda_bundle/include/openmpi
export PMIX_INSTALL_PREFIX=$ronda_bundle PMIX_LIBDIR=$ronda_bundle/lib PMIX_PKGLIBDIR=$ronda_bundle/lib/pmix
export PMIX_DATADIR=$ronda_bundle/share PMIX_PKGDATADIR=$ronda_bundle/share/pmix PMIX_SYSCONFDIR=$ronda_bundle/etc
export PMIX_MCA_mca_base_component_path=$ronda_bundle/lib/pmix HWLOC_HIDE_ERRORS=2
export PATH=$ronda_bundle/bin:${PATH:-/usr/bin:/bin}:$ronda_bundle/tools
export LD_LIBRARY_PATH=$ronda_bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
for ronda_library in "$ronda_bundle"/fallback/*; do
  /sbin/ldconfig -p | grep "${ronda_library##*/} " >/dev/null && continue # to its end: with pipefail, ldconfig must not be cut off
  mkdir -p "$ronda_bundle/missing"
  cp -n "$ronda_library" "$ronda_bundle/missing/"
  case $LD_LIBRARY_PATH in *"$ronda_bundle/missing"*) ;; *) LD_LIBRARY_PATH+=:$ronda_bundle/missing ;; esac
done
export CMAKE_PREFIX_PATH=$ronda_bundle:$ronda_bundle/zlib${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH} MPI_HOME=$ronda_bundle
# One machine, as root, more ranks than cores, no ssh, and no copies by the kernel (ptrace may be refused).
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_plm=isolated OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
unset ronda_bundle ronda_library
ENV

tar -C "$(dirname "$dest")" -czf "$dest.tar.gz" "$(basename "$dest")"
size=$(du -sm "$dest.tar.gz" | cut -f1)
((size < most)) || fail "$dest.tar.gz has $size MiB, $most at most may travel"
echo "ronda: $dest ($(du -sm "$dest" | cut -f1) MiB), and to carry it $dest.tar.gz ($size MiB)"
