# `cmake --install build --prefix P`, then find_package(Pipewright COMPONENTS plan sim). Each module has an
# export file of its own, so that plan and sim can be used without LibTorch.
include(CMakePackageConfigHelpers)
set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Pipewright")

set(components plan sim)
if(PIPEWRIGHT_TORCH)
  list(APPEND components profiler exec)
  # CMake leaves folders inside the source tree, such as .venv, out of an installed program's rpath.
  set_target_properties(pipewright PROPERTIES INSTALL_RPATH "${PIPEWRIGHT_TORCH_DIR}/lib")
  install(TARGETS pipewright RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

foreach(component IN LISTS components)
  install(TARGETS pipewright_${component} EXPORT Pipewright-${component}
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT Pipewright-${component} NAMESPACE pipewright:: DESTINATION "${config_dir}")
endforeach()

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/PipewrightConfig.cmake.in" PipewrightConfig.cmake
  INSTALL_DESTINATION "${config_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(PipewrightConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  "${CMAKE_CURRENT_BINARY_DIR}/PipewrightConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/PipewrightConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/PipewrightDependencies.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/SimGrid.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/LibTorch.cmake"
  DESTINATION "${config_dir}")
