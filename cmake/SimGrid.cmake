# pipewright::simgrid, if it is installed. Debian's package has no CMake files. Read by our own
# build and by an installed Pipewright that was built with it.
find_path(SIMGRID_INCLUDE_DIR simgrid/s4u.hpp)
find_library(SIMGRID_LIBRARY simgrid)
mark_as_advanced(SIMGRID_INCLUDE_DIR SIMGRID_LIBRARY)
if(SIMGRID_INCLUDE_DIR AND SIMGRID_LIBRARY AND NOT TARGET pipewright::simgrid)
  add_library(pipewright::simgrid UNKNOWN IMPORTED)
  set_target_properties(pipewright::simgrid PROPERTIES
    IMPORTED_LOCATION "${SIMGRID_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SIMGRID_INCLUDE_DIR}")
endif()
