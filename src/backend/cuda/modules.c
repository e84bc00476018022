/* The fatbins of the build, taken in as they are. CMake names their folder and lists them. */
#include "backend/cuda/modules.h"

#include "module_list.h" /* made by CMake */

/* X(name of the file) */
#define EMBED(file)                                                                                \
    __asm__(".section .rodata\n"                                                                   \
            ".balign 16\n"                                                                         \
            ".hidden cogpu_module_" #file "\n"                                                     \
            ".globl cogpu_module_" #file "\n"                                                      \
            "cogpu_module_" #file ":\n"                                                            \
            ".incbin \"" COGPU_FATBINS "/" #file ".fatbin\"\n"                                     \
            ".previous\n");                                                                        \
    extern const char cogpu_module_##file[];
#define ROW(file) {#file, cogpu_module_##file},

COGPU_MODULES(EMBED)

const cogpu_module cogpu_modules[] = {COGPU_MODULES(ROW)};
const size_t cogpu_module_count = sizeof cogpu_modules / sizeof *cogpu_modules;
