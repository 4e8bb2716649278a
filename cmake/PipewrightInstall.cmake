# `cmake --install build --prefix P`, then find_package(Pipewright COMPONENTS plan sim). Each module
# has its own export file, so that plan, sim, draw and loop can be used without LibTorch.
include(CMakePackageConfigHelpers)
set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Pipewright")

set(components plan models sim search trace draw loop)
if(PIPEWRIGHT_TORCH)
  list(APPEND components exec engine profiler loop_torch)
  # CMake leaves folders inside the source tree, such as .venv, out of an installed program's rpath.
  set_target_properties(pipewright-torch PROPERTIES INSTALL_RPATH "${PIPEWRIGHT_TORCH_DIR}/lib")
endif()
install(TARGETS pipewright RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
foreach(program IN ITEMS pipewright-torch pipewright-simgrid)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/pipewright")
  endif()
endforeach()

# The window's desktop entry, and the scenario that it opens without a file.
if(TARGET pipewright-gui)
  install(TARGETS pipewright-gui RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(FILES "${PROJECT_SOURCE_DIR}/gui/share/pipewright-gui.desktop"
          DESTINATION "${CMAKE_INSTALL_DATADIR}/applications")
  install(FILES "${PROJECT_SOURCE_DIR}/gui/share/pipewright.svg"
          DESTINATION "${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps")
  install(FILES "${PROJECT_SOURCE_DIR}/gui/share/pipewright-gui.1"
          DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/scenarios/shared-card" "${PROJECT_SOURCE_DIR}/scenarios/gpt-text"
          DESTINATION "${CMAKE_INSTALL_DATADIR}/pipewright/scenarios")
endif()

# Shell completions and man pages, generated from the program's own description of its commands.
foreach(page IN ITEMS
    "completion bash:${CMAKE_INSTALL_DATADIR}/bash-completion/completions/pipewright"
    "completion zsh:${CMAKE_INSTALL_DATADIR}/zsh/site-functions/_pipewright"
    "completion fish:${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d/pipewright.fish"
    "manual:${CMAKE_INSTALL_MANDIR}/man1/pipewright.1")
  string(REGEX REPLACE ":.*" "" words "${page}")
  string(REGEX REPLACE "^[^:]*:" "" place "${page}")
  separate_arguments(words)
  set(made "${PROJECT_BINARY_DIR}/share/${place}")
  cmake_path(GET made PARENT_PATH folder)
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(OUTPUT "${made}" COMMAND pipewright ${words} > "${made}" DEPENDS pipewright VERBATIM)
  list(APPEND made_pages "${made}")
  cmake_path(GET place PARENT_PATH destination)
  install(FILES "${made}" DESTINATION "${destination}")
endforeach()
add_custom_target(pipewright_pages ALL DEPENDS ${made_pages})

foreach(component IN LISTS components)
  install(TARGETS pipewright_${component} EXPORT Pipewright-${component}
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT Pipewright-${component} NAMESPACE pipewright:: DESTINATION "${config_dir}")
endforeach()

# The command line consists of two libraries.
if(PIPEWRIGHT_TORCH)
  install(TARGETS pipewright_front pipewright_command_line EXPORT Pipewright-command_line
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT Pipewright-command_line NAMESPACE pipewright:: DESTINATION "${config_dir}")
endif()

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/PipewrightConfig.cmake.in" PipewrightConfig.cmake
  INSTALL_DESTINATION "${config_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(PipewrightConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  "${CMAKE_CURRENT_BINARY_DIR}/PipewrightConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/PipewrightConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/PipewrightDependencies.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/SimGrid.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/ExecLibraries.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/LibTorch.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/TraceLibraries.cmake"
  DESTINATION "${config_dir}")
