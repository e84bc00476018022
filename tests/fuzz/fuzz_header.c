/*
 * Header, ghost area and directories of any bytes, from a source that is read in pieces: what
 * tiff/ returns must be inside the file and inside the limits.
 */
#include "tiff/tiff.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct input {
    const uint8_t *data;
    size_t bytes;
};

static cogpu_status input_read(void *user, uint64_t offset, size_t bytes, void *to, size_t *got) {
    const struct input *input = user;
    if (offset > input->bytes)
        abort(); /* io/ has to refuse this itself */
    *got = bytes < input->bytes - offset ? bytes : (size_t)(input->bytes - offset);
    memcpy(to, input->data + offset, *got);
    return COGPU_OK;
}

static cogpu_status input_size(void *user, uint64_t *bytes) {
    *bytes = ((const struct input *)user)->bytes;
    return COGPU_OK;
}

static void require(int holds) {
    if (!holds)
        abort();
}

static void check_entry(const cogpu_tiff *tiff, const cogpu_entry *entry) {
    uint64_t numbers[16], some = entry->count < 16 ? entry->count : 16;
    double values[16];
    cogpu_error error;
    require(cogpu_tiff_type_bytes(entry->type) > 0);
    require(!entry->is_inline || entry->bytes <= 8);
    if (cogpu_tiff_u64s(tiff, entry, entry->count - some, some, numbers, &error) == COGPU_OK)
        require(cogpu_tiff_doubles(tiff, entry, 0, some, values, &error) == COGPU_OK ||
                entry->type == 2 || entry->type == 7 || !entry->is_inline);
    require(cogpu_tiff_u64s(tiff, entry, entry->count, 1, numbers, &error) != COGPU_OK);
}

static void check_directories(const cogpu_tiff *tiff, cogpu_arena *arena) {
    cogpu_error error;
    for (uint32_t i = 0; i < tiff->directory_count; i++) {
        const cogpu_ifd *ifd = &tiff->directories[i];
        const char *text = NULL;
        require(ifd->parent < (int32_t)i && ifd->offset < cogpu_io_bytes(tiff->io));
        for (uint32_t k = 0; k < ifd->entry_count; k++) {
            require(cogpu_tiff_find(tiff, i, ifd->entries[k].tag) == &ifd->entries[k]);
            check_entry(tiff, &ifd->entries[k]);
        }
        if (cogpu_tiff_text(tiff, i, TAG_IMAGE_DESCRIPTION, arena, &text, &error) == COGPU_OK)
            require(!text || strlen(text) <= cogpu_io_bytes(tiff->io));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct input input = {data, bytes};
    cogpu_source source = {.struct_size = sizeof(cogpu_source),
                           .user = &input,
                           .read = input_read,
                           .size = input_size};
    const cogpu_limits low = {
        .struct_size = sizeof(cogpu_limits), .directories = 64, .tags = 256, .tag_bytes = 1 << 20};
    cogpu_limits limits = cogpu_limits_complete(&low);
    cogpu_arena arena;
    cogpu_io *io = NULL;
    cogpu_tiff tiff;
    cogpu_error error;
    if (cogpu_io_open_user(&source, &io, &error) != COGPU_OK)
        return 0;
    cogpu_arena_open(&arena, 16 << 20);
    if (cogpu_tiff_open(&tiff, io, &limits, &arena, &error) == COGPU_OK) {
        require(tiff.directory_count > 0 && tiff.directory_count <= limits.directories);
        cogpu_io_seal(io);
        check_directories(&tiff, &arena);
    }
    cogpu_io_close(io);
    cogpu_arena_close(&arena);
    return 0;
}
