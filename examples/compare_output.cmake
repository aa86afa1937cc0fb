# Runs PROGRAM and compares its output with the file EXPECTED, line by line. A line of the form
# "measured error: NUMBER" is a measurement: it must not exceed 1e-6.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE got RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${status}")
endif()
file(READ ${EXPECTED} expected)

set(measured "measured error: ([0-9.]+e[-+][0-9]+)\n")
string(REGEX MATCH "${measured}" found "${got}")
if(found AND NOT CMAKE_MATCH_1 LESS_EQUAL 1e-6)
  message(FATAL_ERROR "the measured error is ${CMAKE_MATCH_1}, above 1e-6")
endif()
string(REGEX REPLACE "${measured}" "measured error: SMALL\n" got "${got}")
string(REGEX REPLACE "${measured}" "measured error: SMALL\n" expected "${expected}")
if(NOT got STREQUAL expected)
  message(FATAL_ERROR "expected:\n${expected}\ngot:\n${got}")
endif()
