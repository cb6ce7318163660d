# The ONNX library with its protocol buffers: ONNX::onnx. Debian's own package file names targets that other packages bring.
find_package(Protobuf QUIET)
find_path(ONNX_INCLUDE_DIR onnx/checker.h)
find_library(ONNX_LIBRARY onnx)
find_library(ONNX_PROTO_LIBRARY onnx_proto)
if(ONNX_INCLUDE_DIR)
  file(STRINGS ${ONNX_INCLUDE_DIR}/onnx/common/version.h line REGEX "LAST_RELEASE_VERSION")
  string(REGEX REPLACE ".*\"([0-9.]+)\".*" "\\1" ONNX_VERSION "${line}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ONNX REQUIRED_VARS ONNX_LIBRARY ONNX_PROTO_LIBRARY ONNX_INCLUDE_DIR Protobuf_FOUND
                                  VERSION_VAR ONNX_VERSION)
if(ONNX_FOUND AND NOT TARGET ONNX::onnx)
  add_library(ONNX::onnx UNKNOWN IMPORTED)
  set_target_properties(ONNX::onnx PROPERTIES IMPORTED_LOCATION ${ONNX_LIBRARY}
                                              INTERFACE_INCLUDE_DIRECTORIES ${ONNX_INCLUDE_DIR}
                                              INTERFACE_COMPILE_DEFINITIONS "ONNX_NAMESPACE=onnx;ONNX_ML=1"
                                              INTERFACE_LINK_LIBRARIES "${ONNX_PROTO_LIBRARY};protobuf::libprotobuf")
endif()
mark_as_advanced(ONNX_INCLUDE_DIR ONNX_LIBRARY ONNX_PROTO_LIBRARY)
