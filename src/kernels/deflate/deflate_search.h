/*
 * Match search for levels 7 to 9: follows the hash chains that deflate_chain.cu made.
 *
 * chain[i] is the distance from byte i to the previous position with the same hash of four bytes,
 * as prev[] of zlib; 0 ends the chain. A chain entry is only a hint. Every position it leads to is
 * compared, so a wrong entry costs time, never correctness.
 *
 *     |<------- previous part ------->|<----------- part ----------->|
 *            p2 <-------- p1 <------------------ i                     chain[i], chain[p1], ...
 *
 * Positions count from the beginning of the previous part: both parts are in shared memory, so a
 * match reaches back 32 KiB, the window of DEFLATE. Each thread searches for four bytes at once, to
 * overlap the latency of their loads.
 */
#ifndef COGPU_KERNELS_DEFLATE_DEFLATE_SEARCH_H
#define COGPU_KERNELS_DEFLATE_DEFLATE_SEARCH_H

#include "kernels/deflate/deflate_format.h"

enum { SEARCH_KEY_BYTES = 4 }; /* bytes that are hashed: shorter matches are not found */

/* Hash chains and results of one part. */
struct chain_search {
    const uint16_t *chain; /* of the part; those of the previous part are before it */
    uint32_t *matches;     /* for each byte: distance | length << 16; 0: none */
};

DEVICE_FN uint32_t match_distance(uint32_t match) {
    return match & 0xFFFF;
}

DEVICE_FN uint32_t match_length(uint32_t match) {
    return match >> 16;
}

/* The 20 bytes from an aligned position on, which candidates for its four bytes are compared to. */
struct search_window {
    uint32_t words[5];
};

/* Four bytes of the window, from byte 4 i + `byte` on; i and `byte` are below 4. */
DEVICE_FN uint32_t window_word(const struct search_window *window, uint32_t byte, uint32_t i) {
    return funnel_right(window->words[i], window->words[i + 1], 8 * byte);
}

/* How many bytes from `at` on equal the window, up to 16. The first four are known to be equal. */
DEVICE_FN uint32_t count_equal_bytes(const struct search_window *window, uint32_t byte,
                                     const uint32_t *words, uint32_t at) {
    uint32_t low = padded_word(words, at / 4 + 1), different[3];
    UNROLL
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t high = padded_word(words, at / 4 + i + 2);
        different[i] = window_word(window, byte, i + 1) ^ funnel_right(low, high, 8 * (at % 4));
        low = high;
    }
    return different[0] != 0   ? SEARCH_KEY_BYTES + trailing_zeros(different[0]) / 8
           : different[1] != 0 ? SEARCH_KEY_BYTES + 4 + trailing_zeros(different[1]) / 8
           : different[2] != 0 ? SEARCH_KEY_BYTES + 8 + trailing_zeros(different[2]) / 8
                               : SEARCH_KEY_BYTES + 12;
}

/* The search for one byte. */
struct chain_walk {
    uint32_t at, max_length;         /* the byte; longest match that is of use */
    uint32_t position, max_distance; /* where the chain has led; how far it may still go back */
    uint32_t longest, match;         /* the best so far; 0: none */
};

DEVICE_FN struct chain_walk begin_chain_walk(const struct encode_part *part, uint32_t i) {
    struct chain_walk walk;
    walk.at = walk.position = PART_BYTES + i;
    walk.max_length = i < part->bytes ? min_u32(SEARCH_LENGTH_MAX, part->bytes - i) : 0;
    walk.max_distance = part->history == 0 ? i : PART_BYTES;
    walk.longest = SEARCH_KEY_BYTES - 1;
    walk.match = 0;
    return walk;
}

/* A chain entry, or 0 where it leads too far, or the match cannot get longer. */
DEVICE_FN uint32_t check_link(const struct chain_walk *walk, uint32_t link) {
    return walk->longest < walk->max_length && link <= walk->max_distance ? link : 0;
}

/* Goes one link back in four chains, and compares. All keys are loaded before the first is used. */
DEVICE_FN void follow_links(const struct deflate_shared *shared, const struct search_window *window,
                            struct chain_walk *walks, const uint32_t *links) {
    uint32_t keys[4];
    UNROLL
    for (uint32_t j = 0; j < 4; j++) {
        walks[j].position -= links[j];
        walks[j].max_distance -= links[j];
        keys[j] = padded_four_bytes(shared->rows, walks[j].position);
    }
    UNROLL
    for (uint32_t j = 0; j < 4; j++) {
        struct chain_walk *walk = &walks[j];
        if (links[j] == 0 || keys[j] != window_word(window, j, 0))
            continue;
        const uint32_t length =
            min_u32(count_equal_bytes(window, j, shared->rows, walk->position), walk->max_length);
        if (length > walk->longest) {
            walk->longest = length;
            walk->match = (walk->at - walk->position) | length << 16;
        }
    }
}

/* The matches of the four bytes of a word. `first_links` are their chain entries, 16 bits each. */
DEVICE_FN words4 search_word(const struct deflate_shared *shared, const struct encode_part *part,
                             const uint16_t *chain, uint32_t index, uint64_t first_links,
                             uint32_t max_chain) {
    struct search_window window;
    struct chain_walk walks[4];
    uint32_t links[4];
    UNROLL
    for (uint32_t i = 0; i < 5; i++)
        window.words[i] = padded_word(byte_row(shared), index + i);
    UNROLL
    for (uint32_t j = 0; j < 4; j++) {
        walks[j] = begin_chain_walk(part, 4 * index + j);
        links[j] = check_link(&walks[j], (uint32_t)(first_links >> 16 * j) & 0xFFFF);
    }
    for (uint32_t hop = 1; (links[0] | links[1] | links[2] | links[3]) != 0; hop++) {
        follow_links(shared, &window, walks, links);
        if (hop == max_chain)
            break;
        UNROLL
        for (uint32_t j = 0; j < 4; j++)
            links[j] = check_link(&walks[j], chain[(int32_t)walks[j].position - PART_BYTES]);
    }
    const words4 matches = {walks[0].match, walks[1].match, walks[2].match, walks[3].match};
    return matches;
}

DEVICE_FN void load_previous_part(struct deflate_shared *shared, const struct encode_part *part) {
    const uint8_t *from = part->in - PART_BYTES;
    UNROLL
    for (uint32_t i = 0; i < PART_BYTES / 4 / PART_THREADS; i++) {
        const uint32_t index = i * PART_THREADS + thread_index();
        shared->rows[padded_index(index)] = load_u32_aligned(from + 4 * index);
    }
    sync_block();
}

/* For each byte of the part, the longest match among the last `max_chain` positions of its chain,
 * the nearest among equally long ones. Chain entries of the next word are loaded ahead. */
DEVICE_FN void search_matches(struct deflate_shared *shared, const struct encode_part *part,
                              const struct chain_search *search, uint32_t max_chain) {
    const uint16_t *chain = search->chain;
    const uint32_t words = (part->bytes + 3) / 4;
    if (part->history > 0)
        load_previous_part(shared, part);
    uint64_t next_links = load_u64_aligned(chain + 4 * min_u32(thread_index(), words - 1));
    for (uint32_t index = thread_index(); index < words; index += PART_THREADS) {
        const uint64_t links = next_links;
        next_links = load_u64_aligned(chain + 4 * min_u32(index + PART_THREADS, words - 1));
        store_words4(search->matches + 4 * index,
                     search_word(shared, part, chain, index, links, max_chain));
    }
    sync_block();
}

#endif
