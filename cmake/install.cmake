# What `make install` adds to the programs and libraries: the file by which pkg-config finds them. The prefix
# is known only when installing (cmake --install --prefix), so cogpu.pc goes by its own place.
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
