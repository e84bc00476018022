/*
 * Hash chains for the Deflate encoder's match search (levels 7 to 9): for each byte of a TIFF block
 * the distance to the previous position with the same hash of four bytes, as prev[] of zlib.
 *
 *     bytes    a b c d x a b c d y a b c d          chain (distances; 0: none)
 *     chain    0 0 0 0 0 5 0 0 0 0 5 0 0 0          "abcd" at 0, 5 and 10
 *
 * One warp makes the chains of 64 KiB. It first reads the 32 KiB before them, so that chains reach
 * back a whole window. It goes through the bytes 128 at a time, four groups of one byte per lane:
 *
 *     hash           each lane
 *     same hash      warp_match: a lower lane of the group with the same hash is the previous one
 *     else           head[hash], the last position with this hash
 *     update         the highest lane of each hash writes head[hash]
 *
 * All lanes read head[] before any writes, with warp barriers between, so the order of lanes does
 * not matter. Only head[] is shared between lanes, and only within the warp.
 *
 * head[] holds positions modulo 2^16 and begins as zeros, so an entry can be wrong: another hash,
 * a position 64 KiB too old, or no position at all. Chains are hints; deflate_search.h checks them.
 *
 * A byte whose four bytes equal those one byte before (inside a run) has no entry: the parse finds
 * runs without a search.
 */
#include "kernels/deflate/deflate_args.h"
#include "kernels/encode/common.h"

enum {
    KEY_BYTES = 4,
    HASH_SIZE = 31 << 9, /* 31 KiB of shared memory: seven warps fit on a multiprocessor */
    GROUPS = 4,          /* of 32 bytes, hashed together so that their loads overlap */
    AHEAD = 1 << 10,     /* bytes between the current ones and those being prefetched */
    CHAIN_BYTES = COGPU_DEFLATE_CHAIN_BYTES
};

/* head[] of zlib: the last position of each hash, modulo 2^16, two in a word. */
struct chain_shared {
    uint32_t head[HASH_SIZE / 2];
};

/* A multiplicative hash of four bytes, below HASH_SIZE; the factor is a prime near 2^32 divided by
 * the golden ratio. Without a key (at the end, or inside a run) it is HASH_SIZE + lane, which no
 * other lane has. Branch-free, so that several loads are in flight. */
DEVICE_FN uint32_t hash_at(const uint8_t *in, uint32_t at, uint32_t bytes) {
    const uint32_t from = at > 0 ? min_u32(at, bytes) - 1 : 0;
    const uint64_t low = load_u32_aligned(in + from / 4 * 4);
    const uint64_t high = load_u32_aligned(in + from / 4 * 4 + 4);
    const uint64_t both = (high << 32 | low) >> 8 * (from % 4);
    const uint32_t key = (uint32_t)(at > 0 ? both >> 8 : both);
    const bool has_key = at + KEY_BYTES <= bytes && (at == 0 || key != (uint32_t)both);
    const uint32_t hash = (uint32_t)((uint64_t)(key * 0x9E3779B1u) * HASH_SIZE >> 32);
    return has_key ? hash : HASH_SIZE + lane_index();
}

/* Chains of the bytes from `begin` on, CHAIN_BYTES of them at most. By a warp. */
DEVICE_FN void make_chains(struct chain_shared *shared, const uint8_t *in, uint32_t bytes,
                           uint32_t begin, uint16_t *chains) {
    const uint32_t lane = lane_index(), end = min_u32(begin + CHAIN_BYTES, bytes);
    number16 *head = (number16 *)shared->head;
    for (uint32_t i = lane; i < HASH_SIZE / 2; i += WARP)
        shared->head[i] = 0;
    sync_warp();
    for (uint32_t base = begin > 0 ? begin - COGPU_DEFLATE_PART_BYTES : 0; base < end;
         base += GROUPS * WARP) {
        uint32_t hashes[GROUPS], same[GROUPS], last[GROUPS];
        if (base + AHEAD + 4 * lane < bytes)
            fetch_ahead(in + base + AHEAD + 4 * lane);
        UNROLL
        for (uint32_t g = 0; g < GROUPS; g++)
            hashes[g] = hash_at(in, base + g * WARP + lane, bytes);
        UNROLL
        for (uint32_t g = 0; g < GROUPS; g++)
            same[g] = warp_match(hashes[g]);
        UNROLL
        for (uint32_t g = 0; g < GROUPS; g++) {
            last[g] = head[min_u32(hashes[g], HASH_SIZE - 1)];
            sync_warp();
            if (hashes[g] < HASH_SIZE && same[g] >> lane == 1) /* the highest lane with this hash */
                head[hashes[g]] = (uint16_t)(base + g * WARP + lane);
            sync_warp();
        }
        UNROLL
        for (uint32_t g = 0; g < GROUPS; g++) {
            const uint32_t at = base + g * WARP + lane, below = same[g] & lanes_below();
            const uint32_t link = below != 0 ? lane - log2_floor(below) : at - last[g];
            if (at >= begin && at < end)
                chains[at] = (uint16_t)(hashes[g] < HASH_SIZE ? link : 0);
        }
    }
}

/* A thread block, of one warp, for every 64 KiB of every TIFF block. */
KERNEL(cogpu_kernel_deflate_chain, struct cogpu_deflate_args, struct chain_shared, WARP, 7) {
    const uint32_t per_block =
        (args->max_parts * COGPU_DEFLATE_PART_BYTES + CHAIN_BYTES - 1) / CHAIN_BYTES;
    const uint32_t index = block_index() / per_block;
    const uint32_t begin = block_index() % per_block * CHAIN_BYTES;
    const cogpu_raw_block *block = &args->blocks[index];
    const uint64_t first = (uint64_t)index * args->max_parts * COGPU_DEFLATE_PART_BYTES;
    if (args->sizes[index] != COGPU_GPU_SPARSE && begin < block->in_bytes)
        make_chains(shared, args->decoded + block->in, block->in_bytes, begin,
                    args->chains + first);
}
