# Dependencies of plan and sim. Read by our own build and by the installed PipewrightConfig.cmake,
# so that both require the same versions.
include(CMakeFindDependencyMacro)
find_dependency(fmt 9)
find_dependency(nlohmann_json 3.11)
include("${CMAKE_CURRENT_LIST_DIR}/SimGrid.cmake")  # optional
