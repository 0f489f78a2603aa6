# The report page inside the program: included by src/CMakeLists.txt, and run as a script at each build, because
# web/dist/index.html may appear or change after cmake was run (`npm run build` in web/). The copy is touched only
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
  COMMAND ${CMAKE_COMMAND} -DBUILT=${CMAKE_SOURCE_DIR}/web/dist/index.html
          -DFALLBACK=${CMAKE_CURRENT_SOURCE_DIR}/report/fallback.html -DOUTPUT=${page_copy}
          -P ${CMAKE_CURRENT_SOURCE_DIR}/report/embed_page.cmake
  BYPRODUCTS ${page_copy}
  VERBATIM)
add_dependencies(paceline_report paceline_page)
set_source_files_properties(
  ${CMAKE_CURRENT_SOURCE_DIR}/report/page.cc
  PROPERTIES OBJECT_DEPENDS ${page_copy} COMPILE_DEFINITIONS PACELINE_PAGE_FILE="${page_copy}")
