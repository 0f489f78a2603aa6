# The model files of recipes/models/ inside the program, so that --model NAME finds them wherever it lies: a generated
# source with the text of each. zoo.cc reads it.
file(GLOB model_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/recipes/models/*.toml)
set(zoo_source ${CMAKE_CURRENT_BINARY_DIR}/zoo_files.cc)
set(zoo_text "#include \"graph/zoo.h\"\n\nnamespace paceline::graph {\n\nstd::span<const ModelText> zoo_files() {\n  static constexpr ModelText kFiles[] = {\n")
foreach(file ${model_files})
  get_filename_component(name ${file} NAME_WLE)
  file(READ ${file} text)
  string(APPEND zoo_text "{\"${name}\", R\"toml(${text})toml\"},\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endforeach()
string(APPEND zoo_text "  };\n  return kFiles;\n}\n\n}  // namespace paceline::graph\n")
file(GENERATE OUTPUT ${zoo_source} CONTENT "${zoo_text}")
target_sources(paceline_graph PRIVATE ${zoo_source})
