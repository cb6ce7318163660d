# The CUDA language and NVIDIA's libraries, for RONDA_CUDA=ON. What is built starts on a machine without a driver too: the CUDA
# runtime is the shared one, and libcuda, which the driver brings, is never linked.
set(RONDA_CUDA_ARCHITECTURES "75-real;80-real;86-real;89-real;90-real;100-real;120" CACHE STRING
    "GPU generations to compile for, unless CMAKE_CUDA_ARCHITECTURES says; one of them builds in a fraction of the time")
if(NOT CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES ${RONDA_CUDA_ARCHITECTURES})
endif()
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "RONDA_CUDA is ON and there is no nvcc: put it in PATH, or name it by CMAKE_CUDA_COMPILER")
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8)
  message(FATAL_ERROR "Ronda needs CUDA 12.8 or newer, and ${CMAKE_CUDA_COMPILER} is of ${CMAKE_CUDA_COMPILER_VERSION}")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that newer compilers of CUDA have it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)  # NVIDIA's libraries are seldom where the loader looks

find_package(CUDAToolkit REQUIRED)
find_package(CUDNN 9.0 REQUIRED)
find_package(NCCL 2.27 REQUIRED)
find_package(NVRTC REQUIRED)

# Headers alone; scripts/fetch_cudnn_frontend.sh fetches them, from Python's package index, into build/cudnn-frontend.
find_path(RONDA_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h
          HINTS ${PROJECT_SOURCE_DIR}/build/cudnn-frontend/include ${CUDAToolkit_INCLUDE_DIRS}
          DOC "Folder of cudnn_frontend.h")
set(found "none")
if(RONDA_CUDNN_FRONTEND_INCLUDE)
  file(STRINGS ${RONDA_CUDNN_FRONTEND_INCLUDE}/cudnn_frontend_version.h lines REGEX "^#define CUDNN_FRONTEND_(MAJOR|MINOR|PATCH)_VERSION ")
  string(REGEX REPLACE "[^0-9;]" "" lines "${lines}")
  string(REPLACE ";" "." found "${lines}")
endif()
if(NOT found VERSION_GREATER_EQUAL 1.32)  # the version that was tried; older ones lack calls that are used
  message(FATAL_ERROR "Ronda for CUDA needs the headers of cudnn-frontend 1.32 or newer, and found ${found} "
                      "(${RONDA_CUDNN_FRONTEND_INCLUDE}): run scripts/fetch_cudnn_frontend.sh, or name their folder by "
                      "RONDA_CUDNN_FRONTEND_INCLUDE")
endif()
add_library(ronda_cudnn_frontend INTERFACE)
target_include_directories(ronda_cudnn_frontend SYSTEM INTERFACE ${RONDA_CUDNN_FRONTEND_INCLUDE})
target_compile_definitions(ronda_cudnn_frontend INTERFACE CUDNN_FRONTEND_SKIP_JSON_LIB)
