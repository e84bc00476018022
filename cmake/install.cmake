# What `make install` adds to the programs and libraries: the file by which pkg-config finds them. The prefix
# is known only when installing (cmake --install --prefix), so cogpu.pc goes by its own place.
include(GNUInstallDirs)
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
list(JOIN cogpu_libraries " " private_libraries)
configure_file(cmake/cogpu.pc.in cogpu.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/cogpu.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
