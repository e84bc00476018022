/* The table of sample types, and the public functions that read it. */
#include "base/type.h"

#include "base/names.h"
#include "base/text.h"

const cogpu_type_row cogpu_type_table[COGPU_TYPE_COUNT] = {
    [COGPU_TYPE_NONE] = {"none", NULL, 0, SAMPLE_FORMAT_UNSIGNED, COGPU_TYPE_NONE},
    [COGPU_TYPE_U8] = {"uint8", "Byte", 1, SAMPLE_FORMAT_UNSIGNED, COGPU_TYPE_NONE},
    [COGPU_TYPE_I8] = {"int8", "Int8", 1, SAMPLE_FORMAT_SIGNED, COGPU_TYPE_NONE},
    [COGPU_TYPE_U16] = {"uint16", "UInt16", 2, SAMPLE_FORMAT_UNSIGNED, COGPU_TYPE_NONE},
    [COGPU_TYPE_I16] = {"int16", "Int16", 2, SAMPLE_FORMAT_SIGNED, COGPU_TYPE_NONE},
    [COGPU_TYPE_U32] = {"uint32", "UInt32", 4, SAMPLE_FORMAT_UNSIGNED, COGPU_TYPE_NONE},
    [COGPU_TYPE_I32] = {"int32", "Int32", 4, SAMPLE_FORMAT_SIGNED, COGPU_TYPE_NONE},
    [COGPU_TYPE_U64] = {"uint64", "UInt64", 8, SAMPLE_FORMAT_UNSIGNED, COGPU_TYPE_NONE},
    [COGPU_TYPE_I64] = {"int64", "Int64", 8, SAMPLE_FORMAT_SIGNED, COGPU_TYPE_NONE},
    [COGPU_TYPE_F16] = {"float16", "Float16", 2, SAMPLE_FORMAT_FLOAT, COGPU_TYPE_NONE},
    [COGPU_TYPE_F32] = {"float32", "Float32", 4, SAMPLE_FORMAT_FLOAT, COGPU_TYPE_NONE},
    [COGPU_TYPE_F64] = {"float64", "Float64", 8, SAMPLE_FORMAT_FLOAT, COGPU_TYPE_NONE},
    [COGPU_TYPE_CI16] = {"complex_int16", "CInt16", 4, SAMPLE_FORMAT_COMPLEX_INTEGER,
                         COGPU_TYPE_I16},
    [COGPU_TYPE_CI32] = {"complex_int32", "CInt32", 8, SAMPLE_FORMAT_COMPLEX_INTEGER,
                         COGPU_TYPE_I32},
    [COGPU_TYPE_CF32] = {"complex64", "CFloat32", 8, SAMPLE_FORMAT_COMPLEX_FLOAT, COGPU_TYPE_F32},
    [COGPU_TYPE_CF64] = {"complex128", "CFloat64", 16, SAMPLE_FORMAT_COMPLEX_FLOAT, COGPU_TYPE_F64},
};

size_t cogpu_type_bytes(cogpu_type type) {
    return (unsigned)type < COGPU_TYPE_COUNT ? cogpu_type_table[type].bytes : 0;
}

const char *cogpu_type_name(cogpu_type type) {
    return cogpu_type_table[(unsigned)type < COGPU_TYPE_COUNT ? type : COGPU_TYPE_NONE].name;
}

/* The float type that holds every value of a type, or comes closest. */
static cogpu_type float_for(cogpu_type type) {
    if (type == COGPU_TYPE_F64 || cogpu_type_bytes(type) > 2)
        return type == COGPU_TYPE_F32 ? COGPU_TYPE_F32 : COGPU_TYPE_F64;
    return type == COGPU_TYPE_F16 ? COGPU_TYPE_F16 : COGPU_TYPE_F32;
}

static cogpu_type union_of_integers(cogpu_type a, cogpu_type b) {
    static const cogpu_type is_signed_by_bytes[] = {
        [1] = COGPU_TYPE_I16, [2] = COGPU_TYPE_I32, [4] = COGPU_TYPE_I64, [8] = COGPU_TYPE_F64};
    bool is_a_signed = cogpu_type_format(a) == SAMPLE_FORMAT_SIGNED;
    size_t a_bytes = cogpu_type_bytes(a), b_bytes = cogpu_type_bytes(b);
    if (cogpu_type_format(a) == cogpu_type_format(b))
        return a_bytes > b_bytes ? a : b;
    cogpu_type with_sign = is_a_signed ? a : b, without = is_a_signed ? b : a;
    if (cogpu_type_bytes(with_sign) > cogpu_type_bytes(without))
        return with_sign;
    return is_signed_by_bytes[cogpu_type_bytes(without)];
}

cogpu_type cogpu_type_union(cogpu_type a, cogpu_type b) {
    if (a == b)
        return a;
    if (cogpu_type_is_complex(a) || cogpu_type_is_complex(b))
        return COGPU_TYPE_NONE;
    if (!cogpu_type_is_float(a) && !cogpu_type_is_float(b))
        return union_of_integers(a, b);
    cogpu_type wide_a = float_for(a), wide_b = float_for(b);
    return cogpu_type_bytes(wide_a) > cogpu_type_bytes(wide_b) ? wide_a : wide_b;
}

static const char *type_name_at(unsigned index) {
    return index + 1 < COGPU_TYPE_COUNT ? cogpu_type_table[index + 1].name : NULL;
}

cogpu_status cogpu_type_parse(const char *name, cogpu_type *type, cogpu_error *error) {
    cogpu_error_clear(error);
    for (unsigned i = COGPU_TYPE_NONE + 1; name && i < COGPU_TYPE_COUNT; i++)
        if (is_same_name(name, cogpu_type_table[i].name) ||
            is_same_name(name, cogpu_type_table[i].gdal_name)) {
            *type = (cogpu_type)i;
            return COGPU_OK;
        }
    return cogpu_fail_unknown_name(error, "sample type", name, type_name_at);
}
