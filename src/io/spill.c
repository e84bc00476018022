/*
 * A spill: bytes that come before their place in the file is known.
 *
 * Its memory holds the last of them. What does not fit any more goes on to a file, so that a small
 * spill needs none, and many small blocks cost one write. The file has no name, so that it is gone
 * with the process; it is beside the file that is written, where there must be room anyway. Where
 * all goes to memory in the end, the spill's memory has room for all.
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

enum { MEMORY_BYTES = 256 << 10, FILE_MODE = 0600 };

struct cogpu_spill {
    const cogpu_out *out;
    int file; /* -1 where there is none yet */
    uint64_t in_file;
    size_t in_memory; /* after those in the file */
    uint8_t *memory;
    size_t room; /* of it */
};

cogpu_status cogpu_spill_open(const cogpu_out *out, uint64_t most, cogpu_spill **spill,
                              cogpu_error *error) {
    cogpu_spill *made = cogpu_allocate(sizeof *made);
    bool is_large = out->room_for && most > MEMORY_BYTES && most <= PTRDIFF_MAX;
    uint8_t *memory = is_large ? cogpu_reserve((size_t)most) : NULL;
    size_t room = memory ? (size_t)most : MEMORY_BYTES;
    if (!memory)
        memory = cogpu_allocate(room);
    if (!made || !memory) {
        cogpu_release(made);
        cogpu_release(memory);
        return cogpu_fail(error, COGPU_MEMORY, "out of memory opening a spill");
    }
    *made = (cogpu_spill){.out = out, .file = -1, .memory = memory, .room = room};
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

void cogpu_spill_hold(cogpu_spill *spill, uint64_t bytes) {
    const bool is_empty = spill->in_file + spill->in_memory == 0;
    uint8_t *memory = is_empty && bytes > spill->room && bytes <= PTRDIFF_MAX
                          ? cogpu_reserve((size_t)bytes)
                          : NULL;
    if (!memory)
        return;
    cogpu_release(spill->memory);
    spill->memory = memory;
    spill->room = (size_t)bytes;
}

/* ---- the file ---- */

/* Where the spill's file is, in words. */
static const char *whereabouts(const cogpu_spill *spill) {
    const char *folder = getenv("TMPDIR");
    if (spill->out->name)
        return spill->out->path;
    return folder && *folder ? folder : "/tmp";
}

/* File systems that have no files without a name get one whose name is taken away. */
static int make_file(int folder, const char *name) {
    char part[COGPU_NAME_BYTES];
    int file = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, FILE_MODE);
    if (file < 0 && cogpu_part_make(folder, name, FILE_MODE, part, &file))
        unlinkat(folder, part, 0);
    return file;
}

static cogpu_status open_file(cogpu_spill *spill, cogpu_error *error) {
    if (spill->out->name) {
        spill->file = make_file(spill->out->folder, spill->out->name);
    } else {
        int folder = open(whereabouts(spill), O_PATH | O_DIRECTORY | O_CLOEXEC);
        spill->file = folder < 0 ? -1 : make_file(folder, "spill");
        if (folder >= 0)
            close(folder);
    }
    if (spill->file < 0)
        return cogpu_fail_errno(error, "cannot make a temporary file", whereabouts(spill));
    return COGPU_OK;
}

static cogpu_status append(cogpu_spill *spill, const void *from, size_t bytes, cogpu_error *error) {
    if (spill->file < 0)
        TRY(open_file(spill, error));
    if (!cogpu_part_write(spill->file, spill->in_file, from, bytes))
        return cogpu_fail_errno(error, "cannot write a temporary file", whereabouts(spill));
    spill->in_file += bytes;
    return COGPU_OK;
}

static cogpu_status flush(cogpu_spill *spill, cogpu_error *error) {
    if (spill->in_memory)
        TRY(append(spill, spill->memory, spill->in_memory, error));
    spill->in_memory = 0;
    return COGPU_OK;
}

/* ---- in and out ---- */

cogpu_status cogpu_spill_add(cogpu_spill *spill, const void *from, size_t bytes, uint64_t *offset,
                             cogpu_error *error) {
    *offset = spill->in_file + spill->in_memory;
    if (bytes > spill->room - spill->in_memory)
        TRY(flush(spill, error));
    if (bytes > spill->room)
        return append(spill, from, bytes, error);
    if (bytes)
        memcpy(spill->memory + spill->in_memory, from, bytes);
    spill->in_memory += bytes;
    return COGPU_OK;
}

uint8_t *cogpu_spill_room(cogpu_spill *spill, size_t bytes, uint64_t *offset) {
    uint8_t *room = spill->memory + spill->in_memory;
    if (spill->file >= 0 || bytes > spill->room - spill->in_memory)
        return NULL;
    *offset = spill->in_memory;
    spill->in_memory += bytes;
    return room;
}

const uint8_t *cogpu_spill_memory(const cogpu_spill *spill) {
    return spill->file < 0 ? spill->memory : NULL;
}

/* As much as the kernel copies from file to file; returns the bytes. What it leaves, because it
 * cannot or because something fails, is left to reads and writes, which say why. */
static uint64_t copy_by_kernel(const cogpu_spill *spill, uint64_t from, uint64_t bytes,
                               const cogpu_out *out, uint64_t offset) {
    off_t at = (off_t)from, to = (off_t)offset;
    uint64_t done = 0;
    if (out->file < 0 || offset > INT64_MAX || bytes > INT64_MAX - offset ||
        !cogpu_part_may_have(offset + bytes))
        return 0;
    while (done < bytes) {
        ssize_t put = copy_file_range(spill->file, &at, out->file, &to, (size_t)(bytes - done), 0);
        if (put <= 0)
            break;
        done += (uint64_t)put;
    }
    return done;
}

static cogpu_status read_back(cogpu_spill *spill, uint64_t from, size_t bytes, cogpu_error *error) {
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(spill->file, spill->memory + done, bytes - done, (off_t)(from + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = EIO;
        if (got <= 0)
            return cogpu_fail_errno(error, "cannot read a temporary file", whereabouts(spill));
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
    TRY(flush(spill, error)); /* which makes the memory free for pieces */
    for (uint64_t done = copy_by_kernel(spill, from, bytes, out, offset); done < bytes;) {
        size_t piece = bytes - done < spill->room ? (size_t)(bytes - done) : spill->room;
        TRY(read_back(spill, from + done, piece, error));
        TRY(cogpu_out_write(out, offset + done, spill->memory, piece, error));
        done += piece;
    }
    return COGPU_OK;
}
