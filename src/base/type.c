/* The sample types by size and name. */
#include "cogpu.h"

static const struct {
    size_t bytes;
    const char *name;
} types[] = {
    [COGPU_TYPE_NONE] = {0, "none"},
    [COGPU_U8] = {1, "uint8"},
    [COGPU_I8] = {1, "int8"},
    [COGPU_U16] = {2, "uint16"},
    [COGPU_I16] = {2, "int16"},
    [COGPU_U32] = {4, "uint32"},
    [COGPU_I32] = {4, "int32"},
    [COGPU_U64] = {8, "uint64"},
    [COGPU_I64] = {8, "int64"},
    [COGPU_F16] = {2, "float16"},
    [COGPU_F32] = {4, "float32"},
    [COGPU_F64] = {8, "float64"},
    [COGPU_CI16] = {4, "complex_int16"},
    [COGPU_CI32] = {8, "complex_int32"},
    [COGPU_CF32] = {8, "complex64"},
    [COGPU_CF64] = {16, "complex128"},
};

size_t cogpu_type_bytes(cogpu_type type) {
    return (unsigned)type < sizeof types / sizeof *types ? types[type].bytes : 0;
}

const char *cogpu_type_name(cogpu_type type) {
    return (unsigned)type < sizeof types / sizeof *types ? types[type].name : "none";
}
