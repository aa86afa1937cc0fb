# minisgl_room(NAME SOURCES a.cpp … [USES room …] [LINKS target …] [PRIVATE_LINKS target …])
#
# One static library target minisgl_NAME a room (a folder of src/). USES lists the rooms that this
# one may include and is what CMake links: the link graph is the dependency rule, and
# tests/include_graph_test compares every #include with it. LINKS are third-party targets that the
# room's headers show, PRIVATE_LINKS those that only its sources use.
set_property(GLOBAL PROPERTY MINISGL_ROOMS "")

function(minisgl_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;USES;LINKS;PRIVATE_LINKS" ${ARGN})
  set(target minisgl_${name})
  if(ROOM_SOURCES)
    add_library(${target} STATIC ${ROOM_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE ${ROOM_PRIVATE_LINKS}
                                            $<BUILD_INTERFACE:minisgl_warnings>)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(minisgl::${name} ALIAS ${target})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(
    ${target} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  foreach(used IN LISTS ROOM_USES)
    target_link_libraries(${target} ${scope} minisgl_${used})
  endforeach()
  target_link_libraries(${target} ${scope} ${ROOM_LINKS})

  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})

  set_property(GLOBAL APPEND PROPERTY MINISGL_ROOMS ${name})
  set_property(GLOBAL PROPERTY MINISGL_ROOM_USES_${name} "${ROOM_USES}")
endfunction()

# minisgl_test(NAME SOURCES a.cpp … USES room …): one GoogleTest binary a room, one test in ctest.
# Those in MINISGL_THREAD_TESTS run under ThreadSanitizer too.
function(minisgl_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;USES;LINKS" ${ARGN})
  # Counting allocations replaces operator new, which ThreadSanitizer has for itself.
  if(MINISGL_SANITIZE MATCHES "thread")
    list(FILTER TEST_SOURCES EXCLUDE REGEX "allocations?(_test)?\\.cpp$")
  endif()
  add_executable(${name} ${TEST_SOURCES})
  foreach(used IN LISTS TEST_USES)
    target_link_libraries(${name} PRIVATE minisgl_${used})
  endforeach()
  target_link_libraries(${name} PRIVATE ${TEST_LINKS} GTest::gmock_main minisgl_warnings)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE MINISGL_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
                                             MINISGL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # The tests' own code need not be fast, and compiles a third faster so.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS sanitizer)
  add_dependencies(sanitizer_tests ${name})
  if(name IN_LIST MINISGL_THREAD_TESTS)
    set_tests_properties(${name} PROPERTIES LABELS "sanitizer;threads")
    add_dependencies(thread_tests ${name})
  endif()
endfunction()
