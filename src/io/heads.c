/* See heads.h. */
#include "io/heads.h"

#include "base/memory.h"

#include <pthread.h>
#include <string.h>

struct entry {
    char *name;
    double until;
    cogpu_head head;
};

struct cogpu_heads {
    double seconds;
    pthread_mutex_t lock;                   /* of the rest */
    struct entry entries[COGPU_HEADS_MOST]; /* the one that ends first comes first */
    uint32_t count;
    size_t bytes;
};

cogpu_heads *cogpu_heads_open(double seconds) {
    cogpu_heads *heads = cogpu_allocate(sizeof *heads);
    if (!heads)
        return NULL;
    *heads = (cogpu_heads){.seconds = seconds};
    pthread_mutex_init(&heads->lock, NULL);
    return heads;
}

/* ---- under the lock ---- */

static size_t cost(const char *name, const cogpu_head *head) {
    return strlen(name) + 1 + head->bytes;
}

static void free_entry(struct entry *entry) {
    if (entry->name)
        explicit_bzero(entry->name, strlen(entry->name));
    cogpu_release(entry->name);
    cogpu_release(entry->head.data);
}

static void take_out(cogpu_heads *heads, uint32_t index) {
    struct entry *entry = &heads->entries[index];
    heads->bytes -= cost(entry->name, &entry->head);
    free_entry(entry);
    heads->count--;
    memmove(entry, entry + 1, (heads->count - index) * sizeof *entry);
}

/* COGPU_HEADS_MOST where there is none. */
static uint32_t index_of(const cogpu_heads *heads, const char *name) {
    for (uint32_t i = 0; i < heads->count; i++)
        if (strcmp(heads->entries[i].name, name) == 0)
            return i;
    return COGPU_HEADS_MOST;
}

static void drop(cogpu_heads *heads, const char *name) {
    uint32_t index = index_of(heads, name);
    if (index < COGPU_HEADS_MOST)
        take_out(heads, index);
}

static void drop_old(cogpu_heads *heads, double now) {
    while (heads->count && heads->entries[0].until <= now)
        take_out(heads, 0);
}

static void make_room(cogpu_heads *heads, size_t bytes) {
    while (heads->count == COGPU_HEADS_MOST ||
           (heads->count && heads->bytes + bytes > COGPU_HEADS_BYTES))
        take_out(heads, 0);
}

/* ---- without it ---- */

void cogpu_heads_close(cogpu_heads *heads) {
    if (!heads)
        return;
    while (heads->count)
        take_out(heads, heads->count - 1);
    pthread_mutex_destroy(&heads->lock);
    cogpu_release(heads);
}

static void *copy_of(const void *data, size_t bytes) {
    void *copy = cogpu_allocate(bytes);
    return copy ? memcpy(copy, data, bytes) : NULL;
}

void cogpu_heads_keep(cogpu_heads *heads, const char *name, double now, const cogpu_head *head) {
    size_t bytes = cost(name, head);
    if (heads->seconds < 0 || bytes > COGPU_HEADS_BYTES)
        return;
    struct entry entry = {
        .name = copy_of(name, strlen(name) + 1), .until = now + heads->seconds, .head = *head};
    entry.head.data = copy_of(head->data, head->bytes);
    if (!entry.name || !entry.head.data) {
        free_entry(&entry);
        return;
    }
    pthread_mutex_lock(&heads->lock);
    drop(heads, name);
    drop_old(heads, now);
    make_room(heads, bytes);
    heads->entries[heads->count++] = entry;
    heads->bytes += bytes;
    pthread_mutex_unlock(&heads->lock);
}

bool cogpu_heads_find(cogpu_heads *heads, const char *name, double now, cogpu_head *head) {
    bool is_found = false;
    pthread_mutex_lock(&heads->lock);
    drop_old(heads, now);
    uint32_t index = index_of(heads, name);
    if (index < COGPU_HEADS_MOST) {
        *head = heads->entries[index].head;
        head->data = copy_of(head->data, head->bytes);
        is_found = head->data != NULL;
    }
    pthread_mutex_unlock(&heads->lock);
    return is_found;
}

void cogpu_heads_drop(cogpu_heads *heads, const char *name) {
    pthread_mutex_lock(&heads->lock);
    drop(heads, name);
    pthread_mutex_unlock(&heads->lock);
}

void cogpu_heads_drop_url(cogpu_heads *heads, const char *url) {
    const size_t bytes = strlen(url);
    pthread_mutex_lock(&heads->lock);
    for (uint32_t i = heads->count; i-- > 0;) {
        const char *name = heads->entries[i].name;
        if (strncmp(name, url, bytes) == 0 && name[bytes] == '\n')
            take_out(heads, i);
    }
    pthread_mutex_unlock(&heads->lock);
}
