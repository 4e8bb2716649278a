# Libraries that exec links besides LibTorch. Read by our own build and by the installed
# PipewrightConfig.cmake.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(OpenSSL 3)
