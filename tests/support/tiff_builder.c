#include "support/tiff_builder.h"

size_t build_type_bytes(uint32_t type) {
    static const uint8_t bytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    return type < sizeof bytes ? bytes[type] : 0;
}

void build_put(const tiff_builder *file, uint8_t *to, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        to[file->big_endian ? bytes - 1 - i : i] = (uint8_t)(value >> (8 * i));
}

uint64_t build_data(tiff_builder *file, const void *data, size_t bytes) {
    size_t start = file->size + (file->size & 1), need = start + bytes;
    if (need > file->capacity) {
        file->capacity = need * 2;
        file->bytes = realloc(file->bytes, file->capacity);
        if (!file->bytes)
            abort();
    }
    if (start > file->size)
        file->bytes[file->size] = 0;
    if (bytes && data)
        memcpy(file->bytes + start, data, bytes);
    else if (bytes)
        memset(file->bytes + start, 0, bytes);
    file->size = need;
    return start;
}

void build_open(tiff_builder *file, bool big_endian, bool bigtiff) {
    uint8_t header[16] = {0};
    *file = (tiff_builder){.big_endian = big_endian, .bigtiff = bigtiff};
    memset(header, big_endian ? 'M' : 'I', 2);
    build_put(file, header + 2, bigtiff ? 43 : 42, 2);
    if (bigtiff)
        build_put(file, header + 4, 8, 2);
    build_data(file, header, bigtiff ? 16 : 8);
    file->link = bigtiff ? 8 : 4;
}

void build_close(tiff_builder *file) {
    free(file->bytes);
    *file = (tiff_builder){0};
}

void build_raw(tiff_builder *file, uint16_t tag, uint16_t type, uint64_t count, const void *value,
               size_t bytes) {
    size_t inline_bytes = file->bigtiff ? 8 : 4;
    if (file->entry_count == BUILD_TAGS_MAX)
        abort();
    build_entry *entry = &file->entries[file->entry_count++];
    *entry = (build_entry){.tag = tag, .type = type, .count = count};
    if (bytes > inline_bytes)
        build_put(file, entry->value, build_data(file, value, bytes), inline_bytes);
    else if (bytes)
        memcpy(entry->value, value, bytes);
}

void build_tag(tiff_builder *file, uint16_t tag, uint16_t type, uint64_t count,
               const void *values) {
    size_t width = build_type_bytes(type), part = type == BUILD_RATIONAL ? 4 : width;
    size_t bytes = (size_t)count * width;
    uint8_t *swapped = malloc(bytes + 1);
    if (!swapped)
        abort();
    for (size_t i = 0; i < bytes; i += part) {
        uint64_t number = 0;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        memcpy((uint8_t *)&number + 8 - part, (const uint8_t *)values + i, part);
#else
        memcpy(&number, (const uint8_t *)values + i, part);
#endif
        build_put(file, swapped + i, number, part);
    }
    build_raw(file, tag, type, count, swapped, bytes);
    free(swapped);
}

void build_shorts(tiff_builder *file, uint16_t tag, size_t count, const uint16_t *values) {
    build_tag(file, tag, BUILD_SHORT, count, values);
}

void build_short(tiff_builder *file, uint16_t tag, uint16_t value) {
    build_tag(file, tag, BUILD_SHORT, 1, &value);
}

void build_long(tiff_builder *file, uint16_t tag, uint32_t value) {
    build_tag(file, tag, BUILD_LONG, 1, &value);
}

void build_doubles(tiff_builder *file, uint16_t tag, size_t count, const double *values) {
    build_tag(file, tag, BUILD_DOUBLE, count, values);
}

void build_text(tiff_builder *file, uint16_t tag, const char *text) {
    build_tag(file, tag, BUILD_ASCII, strlen(text) + 1, text);
}

void build_image(tiff_builder *file, uint32_t width, uint32_t height, uint16_t bands, uint16_t bits,
                 uint16_t photometric, const void *data) {
    size_t bytes = ((size_t)width * bands * bits + 7) / 8 * height;
    uint32_t offset = (uint32_t)build_data(file, data, bytes);
    build_long(file, 256, width);
    build_long(file, 257, height);
    build_short(file, 258, bits);
    build_short(file, 259, 1);
    build_short(file, 262, photometric);
    build_long(file, 273, offset);
    build_short(file, 277, bands);
    build_long(file, 278, height);
    build_long(file, 279, (uint32_t)bytes);
}

int build_compare(const void *a, const void *b) {
    return (int)((const build_entry *)a)->tag - (int)((const build_entry *)b)->tag;
}

uint64_t build_directory(tiff_builder *file, bool chained) {
    size_t word = file->bigtiff ? 8 : 4, head = file->bigtiff ? 8 : 2,
           step = file->bigtiff ? 20 : 12;
    qsort(file->entries, file->entry_count, sizeof *file->entries, build_compare);
    uint64_t start = build_data(file, NULL, head + step * file->entry_count + word);
    uint8_t *to = file->bytes + start;
    build_put(file, to, file->entry_count, head);
    to += head;
    for (size_t i = 0; i < file->entry_count; i++, to += step) {
        const build_entry *entry = &file->entries[i];
        build_put(file, to, entry->tag, 2);
        build_put(file, to + 2, entry->type, 2);
        build_put(file, to + 4, entry->count, word);
        memcpy(to + 4 + word, entry->value, word);
    }
    file->entry_count = 0;
    if (chained) {
        build_put(file, file->bytes + file->link, start, word);
        file->link = (size_t)(to - file->bytes);
    }
    return start;
}
