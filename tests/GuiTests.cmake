# The window's tests need no display: Qt's platform is `offscreen`, except for the test that starts
# Xvfb.
find_package(Qt6 6.4 REQUIRED COMPONENTS Widgets Test)
pipewright_add_pch(widget_tests "${CMAKE_CURRENT_SOURCE_DIR}/pch/widget_tests.hpp" OPTIONS ${test_options}
                   LINK Catch2::Catch2 fmt::fmt nlohmann_json::nlohmann_json Qt6::Widgets Qt6::Test)
pipewright_add_tests(gui OWN_MAIN PCH widget_tests LINK pipewright::gui Qt6::Test)
target_sources(pipewright_gui_tests PRIVATE fuzz/mutator.cpp)  # it makes invalid files
target_compile_definitions(pipewright_gui_tests PRIVATE
  PIPEWRIGHT_PROGRAM="$<TARGET_FILE:pipewright>"
  PIPEWRIGHT_GUI_PROGRAM="$<TARGET_FILE:pipewright-gui>"
  PIPEWRIGHT_PICTURE_REPORT_DIR="${CMAKE_CURRENT_BINARY_DIR}/pictures")
add_dependencies(pipewright_gui_tests pipewright-gui pipewright)

# The pictures again, as on a screen with twice the pixel density.
file(GLOB_RECURSE pictures RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" CONFIGURE_DEPENDS
     "${CMAKE_CURRENT_SOURCE_DIR}/gui/*_pictures_test.cpp")
foreach(source IN LISTS pictures)
  cmake_path(GET source STEM name)
  pipewright_add_test_entry(gui/${name}/x2 pipewright_gui_tests "[#${name}]~[.]" ENVIRONMENT "QT_SCALE_FACTOR=2")
endforeach()
