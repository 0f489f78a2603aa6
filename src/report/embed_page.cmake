# The report page inside the program: included by src/CMakeLists.txt, and run as a script at each build, because
# the page changes after cmake was run (the target web_page of cmake/web.cmake builds it). The copy is touched only
# when the page is another one; page.cc takes it in whole with .incbin.
if(CMAKE_SCRIPT_MODE_FILE)
  if(NOT EXISTS "${BUILT}")
    set(BUILT "${FALLBACK}")
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different "${BUILT}" "${OUTPUT}" COMMAND_ERROR_IS_FATAL ANY)
  return()
endif()

set(page_copy ${CMAKE_CURRENT_BINARY_DIR}/report_page.html)
add_custom_target(
  paceline_page
  COMMAND ${CMAKE_COMMAND} -DBUILT=${PACELINE_WEB_PAGE}
          -DFALLBACK=${CMAKE_CURRENT_SOURCE_DIR}/report/fallback.html -DOUTPUT=${page_copy}
          -P ${CMAKE_CURRENT_SOURCE_DIR}/report/embed_page.cmake
  BYPRODUCTS ${page_copy}
  VERBATIM)
add_dependencies(paceline_report paceline_page)
if(TARGET web_page)
  add_dependencies(paceline_page web_page)
endif()
set_source_files_properties(
  ${CMAKE_CURRENT_SOURCE_DIR}/report/page.cc
  PROPERTIES OBJECT_DEPENDS ${page_copy} COMPILE_DEFINITIONS PACELINE_PAGE_FILE="${page_copy}")
