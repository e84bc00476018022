/*
 * A spill: bytes that are written before their offset in the file is known.
 *
 * The last of them stay in memory. The others go to a temporary file, so that a small spill needs
 * none, and many small blocks cost one write. The file has no name, so that it disappears with the
 * process. It is beside the file that is written, where the space is needed anyway. For a sink in
 * memory the spill stays in memory, too.
 */
#define _GNU_SOURCE /* O_TMPFILE, copy_file_range */
#include "io/io.h"
#include "io/out.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 256 << 10, FILE_MODE = 0600 };

struct cogpu_spill {
    const cogpu_out *out;
    int file; /* -1 while there is none */
    uint64_t in_file;
    size_t in_memory; /* they follow those in the file */
    uint8_t *memory;
    size_t capacity;
};

cogpu_status cogpu_spill_open(const cogpu_out *out, uint64_t most, cogpu_spill **spill,
                              cogpu_error *error) {
    cogpu_spill *made = cogpu_allocate(sizeof *made);
    bool is_large = out->kind->buffer_at && most > BUFFER_BYTES && most <= PTRDIFF_MAX;
    uint8_t *memory = is_large ? cogpu_reserve((size_t)most) : NULL;
    size_t capacity = memory ? (size_t)most : BUFFER_BYTES;
    if (!memory)
        memory = cogpu_allocate(capacity);
    if (!made || !memory) {
        cogpu_release(made);
        cogpu_release(memory);
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory opening a spill");
    }
    *made = (cogpu_spill){.out = out, .file = -1, .memory = memory, .capacity = capacity};
    *spill = made;
    return COGPU_OK;
}

void cogpu_spill_close(cogpu_spill *spill) {
    if (!spill)
        return;
    if (spill->file >= 0)
        close(spill->file);
    cogpu_release(spill->memory);
    cogpu_release(spill);
}

void cogpu_spill_reserve(cogpu_spill *spill, uint64_t bytes) {
    const bool is_empty = spill->in_file + spill->in_memory == 0;
    uint8_t *memory = is_empty && bytes > spill->capacity && bytes <= PTRDIFF_MAX
                          ? cogpu_reserve((size_t)bytes)
                          : NULL;
    if (!memory)
        return;
    cogpu_release(spill->memory);
    spill->memory = memory;
    spill->capacity = (size_t)bytes;
}

/* ---- the file ---- */

/* Where the temporary file is, for messages. */
static const char *shown_path(const cogpu_spill *spill) {
    const char *folder = getenv("TMPDIR");
    if (spill->out->name)
        return spill->out->path;
    return folder && *folder ? folder : "/tmp";
}

/* On file systems without O_TMPFILE: a file that is unlinked at once. */
static int make_unnamed_file(int folder, const char *name) {
    char part[COGPU_NAME_BYTES];
    int file = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, FILE_MODE);
    if (file < 0 && cogpu_part_make(folder, name, FILE_MODE, part, &file))
        unlinkat(folder, part, 0);
    return file;
}

static cogpu_status open_spill_file(cogpu_spill *spill, cogpu_error *error) {
    if (spill->out->name) {
        spill->file = make_unnamed_file(spill->out->folder, spill->out->name);
    } else {
        int folder = open(shown_path(spill), O_PATH | O_DIRECTORY | O_CLOEXEC);
        spill->file = folder < 0 ? -1 : make_unnamed_file(folder, "spill");
        if (folder >= 0)
            close(folder);
    }
    if (spill->file < 0)
        return cogpu_fail_errno(error, "cannot create a temporary file", shown_path(spill));
    return COGPU_OK;
}

static cogpu_status append_to_file(cogpu_spill *spill, const void *from, size_t bytes,
                                   cogpu_error *error) {
    if (spill->file < 0)
        TRY(open_spill_file(spill, error));
    if (!cogpu_part_write(spill->file, spill->in_file, from, bytes))
        return cogpu_fail_errno(error, "cannot write a temporary file", shown_path(spill));
    spill->in_file += bytes;
    return COGPU_OK;
}

static cogpu_status flush_memory(cogpu_spill *spill, cogpu_error *error) {
    if (spill->in_memory)
        TRY(append_to_file(spill, spill->memory, spill->in_memory, error));
    spill->in_memory = 0;
    return COGPU_OK;
}

/* ---- in and out ---- */

cogpu_status cogpu_spill_add(cogpu_spill *spill, const void *from, size_t bytes, uint64_t *offset,
                             cogpu_error *error) {
    *offset = spill->in_file + spill->in_memory;
    if (bytes > spill->capacity - spill->in_memory)
        TRY(flush_memory(spill, error));
    if (bytes > spill->capacity)
        return append_to_file(spill, from, bytes, error);
    if (bytes)
        memcpy(spill->memory + spill->in_memory, from, bytes);
    spill->in_memory += bytes;
    return COGPU_OK;
}

uint8_t *cogpu_spill_buffer(cogpu_spill *spill, size_t bytes, uint64_t *offset) {
    uint8_t *buffer = spill->memory + spill->in_memory;
    if (spill->file >= 0 || bytes > spill->capacity - spill->in_memory)
        return NULL;
    *offset = spill->in_memory;
    spill->in_memory += bytes;
    return buffer;
}

const uint8_t *cogpu_spill_memory(const cogpu_spill *spill) {
    return spill->file < 0 ? spill->memory : NULL;
}

/* Copies as much as the kernel can from file to file, and returns the bytes. Reads and writes copy
 * the rest, and report errors. */
static uint64_t copy_by_kernel(const cogpu_spill *spill, uint64_t from, uint64_t bytes,
                               const cogpu_out *out, uint64_t offset) {
    off_t at = (off_t)from, to = (off_t)offset;
    uint64_t done = 0;
    if (out->descriptor < 0 || offset > INT64_MAX || bytes > INT64_MAX - offset ||
        !cogpu_part_may_grow_to(offset + bytes))
        return 0;
    while (done < bytes) {
        ssize_t put =
            copy_file_range(spill->file, &at, out->descriptor, &to, (size_t)(bytes - done), 0);
        if (put <= 0)
            break;
        done += (uint64_t)put;
    }
    return done;
}

static cogpu_status read_spilled_bytes(cogpu_spill *spill, uint64_t from, size_t bytes,
                                       cogpu_error *error) {
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(spill->file, spill->memory + done, bytes - done, (off_t)(from + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = EIO;
        if (got <= 0)
            return cogpu_fail_errno(error, "cannot read a temporary file", shown_path(spill));
        done += (size_t)got;
    }
    return COGPU_OK;
}

cogpu_status cogpu_spill_copy(cogpu_spill *spill, uint64_t from, uint64_t bytes, cogpu_out *out,
                              uint64_t offset, cogpu_error *error) {
    assert(from <= spill->in_file + spill->in_memory &&
           bytes <= spill->in_file + spill->in_memory - from);
    if (spill->file < 0)
        return cogpu_out_write(out, offset, spill->memory + from, (size_t)bytes, error);
    TRY(flush_memory(spill, error)); /* so that the memory is free */
    for (uint64_t done = copy_by_kernel(spill, from, bytes, out, offset); done < bytes;) {
        size_t chunk = bytes - done < spill->capacity ? (size_t)(bytes - done) : spill->capacity;
        TRY(read_spilled_bytes(spill, from + done, chunk, error));
        TRY(cogpu_out_write(out, offset + done, spill->memory, chunk, error));
        done += chunk;
    }
    return COGPU_OK;
}
