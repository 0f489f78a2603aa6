# `cmake --install` and `cpack -G DEB`: the layout of a bundle (tools/bundle_tree.py) without libraries, which are the
# system's. The program looks for its modules in ../lib/paceline, so an installed tree can be moved.
install(TARGETS paceline RUNTIME DESTINATION bin)
foreach(module paceline_archive paceline_curl paceline_http paceline_mpi paceline_mpich paceline_gloo paceline_cuda)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION lib/paceline)
  endif()
endforeach()
install(DIRECTORY recipes/models/ DESTINATION share/paceline/models FILES_MATCHING PATTERN "*.toml")
install(DIRECTORY recipes/ DESTINATION share/paceline/recipes FILES_MATCHING PATTERN "*.toml" PATTERN "models" EXCLUDE)
install(PROGRAMS share/paceline/paceline_model.py DESTINATION share/paceline)
install(FILES share/paceline/paceline_ddp.py DESTINATION share/paceline)
install(FILES README.md DESTINATION share/doc/paceline)
# What the program writes about itself, by the program that was just built.
foreach(pair "man:man/man1/paceline.1" "completion bash:bash-completion/completions/paceline"
             "completion zsh:zsh/site-functions/_paceline" "completion fish:fish/vendor_completions.d/paceline.fish")
  string(REGEX MATCH "^([^:]+):(.*)$" _ "${pair}")
  set(command "${CMAKE_MATCH_1}")
  set(file "share/${CMAKE_MATCH_2}")
  get_filename_component(folder ${file} DIRECTORY)
  get_filename_component(name ${file} NAME)
  install(CODE "
    execute_process(COMMAND \"${CMAKE_BINARY_DIR}/paceline\" ${command} OUTPUT_FILE \"${CMAKE_BINARY_DIR}/${name}.words\" COMMAND_ERROR_IS_FATAL ANY)
    file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${folder}\" TYPE FILE RENAME \"${name}\" FILES \"${CMAKE_BINARY_DIR}/${name}.words\")")
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME paceline)
set(CPACK_PACKAGE_CONTACT "the developers of Paceline")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trains image classifiers with data parallelism and explains how the training scales")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # dpkg-shlibdeps names the packages of all libraries
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openmpi-bin, ca-certificates")
include(CPack)
