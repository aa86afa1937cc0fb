# `cmake --install` puts the C++ API where find_package(minisgl) finds it:
#   find_package(minisgl REQUIRED)
#   target_link_libraries(app PRIVATE minisgl::minisgl)
# The rooms are static libraries in lib/minisgl; minisgl::minisgl links them all and shows only
# include/minisgl. Their third-party libraries are found by minisgl-config.cmake.
include(CMakePackageConfigHelpers)

add_library(minisgl INTERFACE)
add_library(minisgl::minisgl ALIAS minisgl)
target_compile_features(minisgl INTERFACE cxx_std_20)
target_include_directories(minisgl INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
get_property(rooms GLOBAL PROPERTY MINISGL_ROOMS)
list(REMOVE_ITEM rooms server cli)
list(TRANSFORM rooms PREPEND minisgl_ OUTPUT_VARIABLE room_targets)
target_link_libraries(minisgl INTERFACE ${room_targets})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/minisgl)
install(TARGETS minisgl ${room_targets} EXPORT minisgl-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/minisgl)
install(EXPORT minisgl-targets NAMESPACE minisgl:: DESTINATION ${package_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/minisgl TYPE INCLUDE)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/minisgl-config.cmake.in
                              ${PROJECT_BINARY_DIR}/minisgl-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/minisgl-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/minisgl-config.cmake
              ${PROJECT_BINARY_DIR}/minisgl-config-version.cmake
              ${PROJECT_SOURCE_DIR}/cmake/third_party.cmake
        DESTINATION ${package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY_NOTICES.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
