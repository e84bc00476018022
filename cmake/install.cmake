# What `make install` adds to the programs and libraries: the files by which pkg-config and CMake find them, the manual
# page and shell completions. The prefix is known only when installing (cmake --install --prefix), so cogpu.pc goes by its
# own place.
include(GNUInstallDirs)
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
list(JOIN cogpu_libraries " " private_libraries)
# A program that links the static library by a compiler of C has to name what C++ needs.
if(COGPU_HAVE_LERC)
  set(cxx_libraries ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
  list(REMOVE_ITEM cxx_libraries ${CMAKE_C_IMPLICIT_LINK_LIBRARIES} m)
  list(TRANSFORM cxx_libraries PREPEND " -l" OUTPUT_VARIABLE cxx_words)
  list(JOIN cxx_words "" cxx_words)
  string(APPEND private_libraries "${cxx_words}")
endif()
configure_file(cmake/cogpu.pc.in cogpu.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/cogpu.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The manual page and the shell completions, which the program prints from its option table. A program for another
# machine cannot run here.
if(NOT CMAKE_CROSSCOMPILING)
  set(references ${CMAKE_BINARY_DIR}/reference)
  file(MAKE_DIRECTORY ${references})
  foreach(file man:cogpu.1 bash:cogpu.bash zsh:_cogpu)
    string(REPLACE ":" ";" parts ${file})
    list(GET parts 0 format)
    list(GET parts 1 name)
    add_custom_command(OUTPUT ${references}/${name} COMMAND cogpu_cli reference ${format} > ${references}/${name}
                       DEPENDS cogpu_cli)
    list(APPEND reference_files ${references}/${name})
  endforeach()
  add_custom_target(cogpu_reference ALL DEPENDS ${reference_files})
  install(FILES ${references}/cogpu.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${references}/cogpu.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME cogpu)
  install(FILES ${references}/_cogpu DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()

# The same for CMake: find_package(cogpu). A new minor version may change the interface before 1.0.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/cogpu)
configure_package_config_file(cmake/cogpuConfig.cmake.in cogpuConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(cogpuConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT cogpuTargets NAMESPACE cogpu:: DESTINATION ${package_folder})
install(FILES ${CMAKE_BINARY_DIR}/cogpuConfig.cmake ${CMAKE_BINARY_DIR}/cogpuConfigVersion.cmake
        DESTINATION ${package_folder})
