/* See mosaic_files.h. Of the files that no read uses, the least recently used is closed first. */
#include "context/mosaic_files.h"

#include <pthread.h>
#include <sys/resource.h>

enum { OPEN_FILES_MIN = 8, OPEN_FILES_MAX = 512, PROCESS_SHARE = 4 };

typedef struct member_file {
    cogpu_file *file;
    uint32_t users;
    bool is_opening;
    uint32_t newer, older; /* in the list of files without users; NONE at its ends */
} member_file;

#define NONE UINT32_MAX

struct cogpu_mosaic_files {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    cogpu_member_opener opener;
    member_file *members;
    uint32_t count, open_count, open_limit;
    uint32_t newest, oldest; /* of the files without users */
};

uint32_t cogpu_mosaic_files_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return OPEN_FILES_MIN;
    rlim_t share = limit.rlim_cur / PROCESS_SHARE;
    return share > OPEN_FILES_MAX   ? OPEN_FILES_MAX
           : share < OPEN_FILES_MIN ? OPEN_FILES_MIN
                                    : (uint32_t)share;
}

cogpu_status cogpu_mosaic_files_open(uint32_t count, const cogpu_member_opener *opener,
                                     cogpu_mosaic_files **out, cogpu_error *error) {
    cogpu_mosaic_files *files = cogpu_allocate(sizeof *files);
    member_file *members = cogpu_allocate((size_t)count * sizeof *members + 1);
    if (!files || !members) {
        cogpu_release(files);
        cogpu_release(members);
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for %u sources", count);
    }
    *files = (cogpu_mosaic_files){.opener = *opener,
                                  .members = members,
                                  .count = count,
                                  .open_limit = cogpu_mosaic_files_limit(),
                                  .newest = NONE,
                                  .oldest = NONE};
    for (uint32_t i = 0; i < count; i++)
        members[i] = (member_file){.newer = NONE, .older = NONE};
    pthread_mutex_init(&files->lock, NULL);
    pthread_cond_init(&files->opened, NULL);
    *out = files;
    return COGPU_OK;
}

void cogpu_mosaic_files_close(cogpu_mosaic_files *files) {
    if (!files)
        return;
    for (uint32_t i = 0; i < files->count; i++)
        cogpu_file_close(files->members[i].file);
    pthread_cond_destroy(&files->opened);
    pthread_mutex_destroy(&files->lock);
    cogpu_release(files->members);
    cogpu_release(files);
}

/* ---- the list of files without users ------------------------------------------------------- */

static void append_unused(cogpu_mosaic_files *files, uint32_t member) {
    files->members[member].older = files->newest;
    files->members[member].newer = NONE;
    if (files->newest != NONE)
        files->members[files->newest].newer = member;
    else
        files->oldest = member;
    files->newest = member;
}

static void remove_unused(cogpu_mosaic_files *files, uint32_t member) {
    member_file *self = &files->members[member];
    if (self->newer != NONE)
        files->members[self->newer].older = self->older;
    else
        files->newest = self->older;
    if (self->older != NONE)
        files->members[self->older].newer = self->newer;
    else
        files->oldest = self->newer;
    self->newer = self->older = NONE;
}

/* Returns a file to be closed outside of the lock, or NULL. */
static cogpu_file *take_oldest_above_limit(cogpu_mosaic_files *files) {
    if (files->open_count <= files->open_limit || files->oldest == NONE)
        return NULL;
    uint32_t member = files->oldest;
    cogpu_file *file = files->members[member].file;
    remove_unused(files, member);
    files->members[member].file = NULL;
    files->open_count--;
    return file;
}

/* ---- acquire and release ------------------------------------------------------------------- */

static cogpu_status open_member(cogpu_mosaic_files *files, uint32_t member, cogpu_error *error) {
    member_file *self = &files->members[member];
    cogpu_file *file = NULL;
    self->is_opening = true;
    pthread_mutex_unlock(&files->lock);
    cogpu_status status = files->opener.open(files->opener.user, member, &file, error);
    pthread_mutex_lock(&files->lock);
    self->is_opening = false;
    self->file = file;
    files->open_count += file != NULL;
    if (file)
        append_unused(files, member);
    pthread_cond_broadcast(&files->opened);
    return status;
}

cogpu_status cogpu_mosaic_files_acquire(cogpu_mosaic_files *files, uint32_t member,
                                        const cogpu_file **file, cogpu_error *error) {
    member_file *self = &files->members[member];
    cogpu_status status = COGPU_OK;
    pthread_mutex_lock(&files->lock);
    while (self->is_opening)
        pthread_cond_wait(&files->opened, &files->lock);
    if (!self->file)
        status = open_member(files, member, error);
    if (status == COGPU_OK) {
        if (self->users++ == 0)
            remove_unused(files, member);
        *file = self->file;
    }
    cogpu_file *closing = take_oldest_above_limit(files);
    pthread_mutex_unlock(&files->lock);
    cogpu_file_close(closing);
    return status;
}

void cogpu_mosaic_files_release(cogpu_mosaic_files *files, uint32_t member) {
    pthread_mutex_lock(&files->lock);
    if (--files->members[member].users == 0)
        append_unused(files, member);
    cogpu_file *closing = take_oldest_above_limit(files);
    pthread_mutex_unlock(&files->lock);
    cogpu_file_close(closing);
}
