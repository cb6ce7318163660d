# What `cmake --install` adds beside the rooms: the package files for find_package(ronda), the data sets, the documents.
include(CMakePackageConfigHelpers)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/rondaConfig.cmake.in ${PROJECT_BINARY_DIR}/rondaConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ronda)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rondaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT ronda NAMESPACE ronda:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ronda)
install(FILES ${PROJECT_BINARY_DIR}/rondaConfig.cmake ${PROJECT_BINARY_DIR}/rondaConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ronda)
install(FILES cmake/FindLibZip.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ronda)
if(ONNX_FOUND)
  install(FILES cmake/FindONNX.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ronda)
endif()
if(RONDA_CUDA)
  install(FILES cmake/FindCUDNN.cmake cmake/FindNCCL.cmake cmake/FindNVRTC.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ronda)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/ronda.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ronda)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/mnist ${PROJECT_SOURCE_DIR}/share/reviews DESTINATION ${CMAKE_INSTALL_DATADIR}/ronda)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/ronda)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
