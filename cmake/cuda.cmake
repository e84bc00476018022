# The kernels, src/kernels/*/*.cu, are compiled twice: by the C compiler for the emulator, always; and
# by nvcc, where it is found, into one fatbin a file that the library carries inside. No CUDA library is linked.
# Products are rounded before they are added to (-fmad=false), as on the host: so both give the same bits.
set(COGPU_CUDA AUTO CACHE STRING "Compile kernels for GPUs with nvcc: AUTO, ON or OFF")
set(COGPU_CUDA_ARCHITECTURES 75 80 90 CACHE STRING "Compute capabilities to compile for")
set(COGPU_CUDA_PTX "" CACHE STRING "Compute capability of the PTX, which serves GPUs that the others do not (default: the last)")
set(COGPU_CUDA_FLAGS -lineinfo CACHE STRING "More options of nvcc")

file(GLOB kernel_sources CONFIGURE_DEPENDS src/kernels/*/*.cu)
# What only some lanes set and use looks uninitialised to the C compiler.
set_source_files_properties(${kernel_sources} PROPERTIES LANGUAGE C COMPILE_OPTIONS "-xc;-Wno-maybe-uninitialized")
list(APPEND cogpu_left_out ${CMAKE_SOURCE_DIR}/src/gpu/driver/modules.c
     ${CMAKE_SOURCE_DIR}/src/gpu/driver/modules_absent.c)

find_program(COGPU_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
if(COGPU_CUDA STREQUAL "ON" AND NOT COGPU_NVCC)
  message(FATAL_ERROR "nvcc was asked for and is not there")
endif()
if(COGPU_CUDA STREQUAL "OFF" OR NOT COGPU_NVCC OR NOT kernel_sources)
  message(STATUS "nvcc: FALSE")
  set(module_source src/gpu/driver/modules_absent.c)
else()
  message(STATUS "nvcc: ${COGPU_NVCC}")
  set(module_source src/gpu/driver/modules.c)
  set(fatbins ${CMAKE_BINARY_DIR}/fatbins)
  file(MAKE_DIRECTORY ${fatbins})
  foreach(architecture ${COGPU_CUDA_ARCHITECTURES})
    list(APPEND targets -gencode=arch=compute_${architecture},code=sm_${architecture})
    set(ptx ${architecture})
  endforeach()
  if(COGPU_CUDA_PTX)
    set(ptx ${COGPU_CUDA_PTX})
  endif()
  list(APPEND targets -gencode=arch=compute_${ptx},code=compute_${ptx})
  string(REGEX MATCHALL "[0-9]+" capabilities "${COGPU_CUDA_ARCHITECTURES}") # without the letter of 90a
  list(JOIN capabilities ", " capabilities)
  set(module_list "#define COGPU_FATBINS \"${fatbins}\"\n#define COGPU_CAPABILITIES ${capabilities}\n#define COGPU_MODULES(X)")
  # nvcc puts paths of sources into fatbins. Relative ones do not name the build machine.
  file(RELATIVE_PATH shown_src ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}/src)
  file(RELATIVE_PATH shown_include ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}/include)
  # ccache keeps what nvcc makes, too, if it is told that this is a compilation (-c).
  foreach(source ${kernel_sources})
    get_filename_component(name ${source} NAME_WE)
    file(RELATIVE_PATH shown_source ${CMAKE_BINARY_DIR} ${source})
    add_custom_command(
      OUTPUT ${fatbins}/${name}.fatbin
      COMMAND ${CMAKE_C_COMPILER_LAUNCHER} ${COGPU_NVCC} -c -fatbin -std=c++17 -O3 -fmad=false ${COGPU_CUDA_FLAGS} ${targets} -I${shown_src}
              -I${shown_include} -MD -MF ${fatbins}/${name}.d
              -o ${fatbins}/${name}.fatbin ${shown_source}
      DEPENDS ${source}
      DEPFILE ${fatbins}/${name}.d
      COMMENT "nvcc ${name}.cu" VERBATIM)
    list(APPEND fatbin_files ${fatbins}/${name}.fatbin)
    string(APPEND module_list " X(${name})")
  endforeach()
  file(WRITE ${fatbins}/module_list.h.new "${module_list}\n")
  configure_file(${fatbins}/module_list.h.new ${fatbins}/module_list.h COPYONLY)
  set_source_files_properties(${module_source} PROPERTIES OBJECT_DEPENDS "${fatbin_files}"
                              COMPILE_OPTIONS "-I${fatbins}")
endif()
