# NVRTC, CUDA's compiler at run time: NVRTC::nvrtc. FindCUDAToolkit has a target for it too, which links libcuda, and a program
# that does would not start where there is no driver. Looks in the CUDA toolkit, and where Python's wheels put it
# (NVRTC_ROOT=…/nvidia/cu13).
find_package(CUDAToolkit QUIET)
find_path(NVRTC_INCLUDE_DIR nvrtc.h HINTS ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
find_library(NVRTC_LIBRARY NAMES nvrtc libnvrtc.so.13 libnvrtc.so.12 NAMES_PER_DIR
             HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT} PATH_SUFFIXES lib lib64)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NVRTC REQUIRED_VARS NVRTC_LIBRARY NVRTC_INCLUDE_DIR)
if(NVRTC_FOUND AND NOT TARGET NVRTC::nvrtc)
  add_library(NVRTC::nvrtc UNKNOWN IMPORTED)
  set_target_properties(NVRTC::nvrtc PROPERTIES IMPORTED_LOCATION ${NVRTC_LIBRARY}
                                                INTERFACE_INCLUDE_DIRECTORIES ${NVRTC_INCLUDE_DIR})
endif()
mark_as_advanced(NVRTC_INCLUDE_DIR NVRTC_LIBRARY)
