/*
 * The header of a .npy file of version 1.0.
 */
#include "npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* NumPy has no complex integers: they become records of two. */
static const char *dtype_descr(cogpu_type type) {
    switch (type) {
    case COGPU_TYPE_U8:
        return "'|u1'";
    case COGPU_TYPE_I8:
        return "'|i1'";
    case COGPU_TYPE_U16:
        return "'<u2'";
    case COGPU_TYPE_I16:
        return "'<i2'";
    case COGPU_TYPE_U32:
        return "'<u4'";
    case COGPU_TYPE_I32:
        return "'<i4'";
    case COGPU_TYPE_U64:
        return "'<u8'";
    case COGPU_TYPE_I64:
        return "'<i8'";
    case COGPU_TYPE_F16:
        return "'<f2'";
    case COGPU_TYPE_F32:
        return "'<f4'";
    case COGPU_TYPE_F64:
        return "'<f8'";
    case COGPU_TYPE_CI16:
        return "[('re', '<i2'), ('im', '<i2')]";
    case COGPU_TYPE_CI32:
        return "[('re', '<i4'), ('im', '<i4')]";
    case COGPU_TYPE_CF32:
        return "'<c8'";
    default:
        return "'<c16'";
    }
}

void cogpu_npy_header(cogpu_type type, uint32_t bands, uint32_t height, uint32_t width,
                      char header[NPY_HEADER]) {
    enum { PREFIX = 10, TEXT = NPY_HEADER - PREFIX };
    static const uint8_t prefix[PREFIX] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, TEXT, 0};
    memset(header, ' ', NPY_HEADER);
    memcpy(header, prefix, PREFIX);
    int length = snprintf(header + PREFIX, TEXT,
                          "{'descr': %s, 'fortran_order': False, "
                          "'shape': (%" PRIu32 ", %" PRIu32 ", %" PRIu32 "), }",
                          dtype_descr(type), bands, height, width);
    header[PREFIX + length] = ' ';
    header[NPY_HEADER - 1] = '\n';
}
