# The report page of web/: the target web_page, and in PACELINE_WEB_PAGE the path of the built file (empty where it
# is not built: PACELINE_WEB is OFF, or there is no npm; the program then carries its small fallback page).
#
# Two commands: the install (npm ci) runs when web/package-lock.json changed, the build when a source of the page
# did. The page goes into the build directory; the libraries into web/node_modules, which all build directories
# share, so that installs take turns. As a script (-P) this file does the install.

if(CMAKE_SCRIPT_MODE_FILE)
  # npm writes this file last: newer than the lockfile, it says that an install (ours or a developer's) is whole.
  set(installed ${WEB}/node_modules/.package-lock.json)
  file(LOCK ${WEB} DIRECTORY GUARD PROCESS TIMEOUT 300)  # GUARD FILE crashes CMake 3.25 in a script
  if(NOT EXISTS ${installed} OR ${WEB}/package-lock.json IS_NEWER_THAN ${installed})
    message(STATUS "web: installing the page's libraries (npm ci)")
    execute_process(COMMAND ${NPM} ci --omit=dev --no-audit --no-fund --loglevel=error
                    WORKING_DIRECTORY ${WEB} RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR "web: npm ci failed (${failed}), see above; is there a network? "
                          "Build without the page: cmake -DPACELINE_WEB=OFF")
    endif()
    file(TOUCH ${installed})
  endif()
  file(TOUCH ${STAMP})
  return()
endif()

option(PACELINE_WEB "Build the report page (needs npm, and a network the first time)" ON)
set(PACELINE_WEB_PAGE "")
if(NOT PACELINE_WEB)
  return()
endif()

find_program(NPM npm)
find_program(NODE NAMES node nodejs)
set(web_node_version none)
if(NODE)
  execute_process(COMMAND ${NODE} --version OUTPUT_VARIABLE web_node_version OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REPLACE "v" "" web_node_version "${web_node_version}")
endif()
if(NOT NPM OR NOT NODE OR web_node_version VERSION_LESS 18)
  message(NOTICE "-- web: the report page is not built: it needs npm and node 18 or newer (found: "
                 "node ${web_node_version}); apt-get install nodejs npm, then run cmake again")
  return()
endif()

set(web_source ${CMAKE_CURRENT_LIST_DIR}/../web)
cmake_path(NORMAL_PATH web_source)
set(web_output ${CMAKE_BINARY_DIR}/web)
set(web_stamp ${CMAKE_BINARY_DIR}/web-installed)
set(PACELINE_WEB_PAGE ${web_output}/index.html)
file(GLOB_RECURSE web_files CONFIGURE_DEPENDS ${web_source}/src/* ${web_source}/build/* ${web_source}/samples/*)

add_custom_command(
  OUTPUT ${web_stamp}
  COMMAND ${CMAKE_COMMAND} -DWEB=${web_source} -DNPM=${NPM} -DSTAMP=${web_stamp} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${web_source}/package-lock.json ${CMAKE_CURRENT_LIST_FILE}
  COMMENT "Libraries of the report page"
  VERBATIM)
add_custom_command(
  OUTPUT ${PACELINE_WEB_PAGE}
  COMMAND ${NPM} run --silent build -- --outDir ${web_output} --logLevel warn
  WORKING_DIRECTORY ${web_source}
  DEPENDS ${web_stamp} ${web_files} ${web_source}/index.html ${web_source}/package.json ${web_source}/vite.config.mjs
          ${web_source}/tsconfig.json
  COMMENT "Report page"
  VERBATIM)
add_custom_target(web_page DEPENDS ${PACELINE_WEB_PAGE})
