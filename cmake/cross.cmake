# Toolchain file for another architecture, with Debian's cross compiler:
#   cmake -S . -B build-aarch64 -DCMAKE_TOOLCHAIN_FILE=cmake/cross.cmake -DCOGPU_CROSS=aarch64
# COGPU_CROSS: aarch64 or s390x. COGPU_CROSS_ROOT: folder with libraries of that architecture, as
# tools/cross.sh makes it; by default the cross compiler's own libc alone, so that no optional library is found.
# Where qemu-user is installed, CTest runs the test programs with it.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES COGPU_CROSS COGPU_CROSS_ROOT)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${COGPU_CROSS})
set(CMAKE_LIBRARY_ARCHITECTURE ${COGPU_CROSS}-linux-gnu)
set(CMAKE_C_COMPILER ${CMAKE_LIBRARY_ARCHITECTURE}-gcc)
set(CMAKE_CXX_COMPILER ${CMAKE_LIBRARY_ARCHITECTURE}-g++)

if(COGPU_CROSS_ROOT)
  set(CMAKE_SYSROOT ${COGPU_CROSS_ROOT})
  set(cross_root ${COGPU_CROSS_ROOT})
else()
  set(cross_root /usr/${CMAKE_LIBRARY_ARCHITECTURE})
endif()
set(CMAKE_FIND_ROOT_PATH ${cross_root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()

find_program(COGPU_QEMU NAMES qemu-${COGPU_CROSS} qemu-${COGPU_CROSS}-static)
if(COGPU_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${COGPU_QEMU} -L ${cross_root})
endif()
