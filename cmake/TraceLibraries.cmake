# Libraries with which trace reads files. Read by our own build and by the installed
# PipewrightConfig.cmake.
include(CMakeFindDependencyMacro)
find_dependency(simdjson 3)
find_dependency(SQLite3 3.37)
find_dependency(ZLIB)
