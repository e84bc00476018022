/*
 * The syntax of a TIFF file, written: header, ghost area, directories and their arrays, little
 * endian always. What stands in the tags is the business of image/ and api/.
 */
#ifndef COGPU_TIFF_WRITE_H
#define COGPU_TIFF_WRITE_H

#include "tiff/tiff.h"

typedef struct cogpu_new_tag {
    uint16_t id, type;
    uint64_t count;
    const void *values; /* in the machine's byte order; a RATIONAL is two u32 */
} cogpu_new_tag;

/* Tags of a directory in the making; added in any order, kept in that of their numbers. A copy of
 * the struct shares its tags: only one of both may grow. */
typedef struct cogpu_tag_list {
    cogpu_new_tag *tags;
    uint32_t count, room;
} cogpu_tag_list;

/* A tag with a copy of its values; ARGUMENT for one that is there, and for what TIFF cannot say. */
cogpu_status cogpu_tag_add(cogpu_tag_list *list, cogpu_arena *arena, uint16_t id, uint16_t type,
                           uint64_t count, const void *values, cogpu_error *error);
/* Of one SHORT, one LONG, or text with its NUL. */
cogpu_status cogpu_tag_add_short(cogpu_tag_list *list, cogpu_arena *arena, uint16_t id,
                                 uint16_t value, cogpu_error *error);
cogpu_status cogpu_tag_add_long(cogpu_tag_list *list, cogpu_arena *arena, uint16_t id,
                                uint32_t value, cogpu_error *error);
cogpu_status cogpu_tag_add_text(cogpu_tag_list *list, cogpu_arena *arena, uint16_t id,
                                const char *text, cogpu_error *error);
bool cogpu_tag_list_has(const cogpu_tag_list *list, uint16_t id);

/* A directory: its tags, but for the two that say where its blocks are, which it makes itself. */
typedef struct cogpu_new_directory {
    cogpu_tag_list tags;
    bool is_tiled;
    uint64_t blocks;
    const uint64_t *offsets, *bytes; /* of the blocks; needed only when it is written */
    uint64_t at;                     /* set by cogpu_directories_lay_out: where it stands */
} cogpu_new_directory;

/* The directories as one piece that begins at `start`: each with the values that do not fit its
 * entries, in order, then all arrays of offsets and byte counts, in the same order. Sets their
 * places and *end. Nothing of it depends on offsets and bytes of blocks. Directories and values
 * begin at even bytes. Byte counts are LONG, offsets LONG or in BigTIFF LONG8. */
cogpu_status cogpu_directories_lay_out(cogpu_new_directory *directories, uint32_t count,
                                       bool bigtiff, uint64_t start, uint64_t *end,
                                       cogpu_error *error);
/* Writes that piece into `to`, which has room for end - start bytes. The last directory points to
 * none. */
void cogpu_directories_write(const cogpu_new_directory *directories, uint32_t count, bool bigtiff,
                             uint64_t start, uint64_t end, uint8_t *to);

/* Header and, where `ghost` has promises (COGPU_GHOST_...), the ghost area, up to where the first
 * directory of a COG begins; returns how many bytes. COGPU_NEW_HEADER_MAX are enough. */
enum { COGPU_NEW_HEADER_MAX = 512 };
size_t cogpu_header_write(bool bigtiff, uint32_t ghost, uint64_t first_directory, uint8_t *to);

#endif
