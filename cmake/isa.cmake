# minisgl_isa_sources(TARGET SOURCES a.cpp …): the same sources once per instruction set, into the
# namespace MINISGL_ISA of each. Which one runs is chosen at start; see src/kernel/cpu/isas.cpp.
function(minisgl_isa_sources target)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  # name, what users call it, flags
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(v3 -mavx2 -mfma -mf16c -mbmi2)
    minisgl_one_isa(${target} x86_64_v2 "x86-64-v2" "${ARG_SOURCES}" -march=x86-64-v2)
    minisgl_one_isa(${target} avx2 "avx2" "${ARG_SOURCES}" ${v3})
    minisgl_one_isa(${target} avx512 "avx512" "${ARG_SOURCES}" ${v3} -mavx512f -mavx512bw
                    -mavx512cd -mavx512dq -mavx512vl)
  else()
    minisgl_one_isa(${target} generic "generic" "${ARG_SOURCES}")
  endif()
endfunction()

function(minisgl_one_isa target isa name sources)
  set(objects ${target}_${isa})
  add_library(${objects} OBJECT ${sources})
  target_compile_features(${objects} PRIVATE cxx_std_20)
  target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(${objects} PRIVATE MINISGL_ISA=${isa} MINISGL_ISA_NAME="${name}")
  # Fused multiply-adds stand where the source says so and nowhere else. Debug builds optimise these
  # files too, they would be a hundred times slower; sanitised ones little, they would compile for
  # minutes.
  if(MINISGL_SANITIZE)
    set(level -O1)
  else()
    set(level -O3)
  endif()
  target_compile_options(${objects} PRIVATE ${level} -ffp-contract=off ${ARGN})
  # g++ 12 warns about its own AVX-512 header (GCC bug 105593).
  target_compile_options(${objects} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized
                                            -Wno-uninitialized>)
  target_link_libraries(${objects} PRIVATE minisgl_warnings)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
endfunction()
