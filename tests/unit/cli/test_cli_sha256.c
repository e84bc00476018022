/*
 * The command line's SHA-256: both ways to mix, against the sums of FIPS 180-4's examples and, for
 * every length around the edges of a block, against each other fed in odd pieces. The source is
 * taken in whole, since a machine with the SHA extension would never run the portable way.
 */
#include "support/test.h"

#include "../../../cli/sha256.c"

static void sum(cogpu_sha256_mix *mix, const char *text, size_t bytes, size_t piece, char out[65]) {
    cogpu_sha256 hash;
    cogpu_sha256_open(&hash);
    hash.mix = mix;
    for (size_t done = 0; done < bytes; done += piece)
        cogpu_sha256_add(&hash, text + done, bytes - done < piece ? bytes - done : piece);
    cogpu_sha256_close(&hash, out);
}

static void check_examples(cogpu_sha256_mix *mix) {
    static const char long_text[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char out[65];
    sum(mix, "", 0, 1, out);
    CHECK_TEXT(out, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sum(mix, "abc", 3, 3, out);
    CHECK_TEXT(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sum(mix, long_text, 56, 56, out);
    CHECK_TEXT(out, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void portable_sums(void) {
    check_examples(mix_portable);
}

static void fastest_sums(void) {
    check_examples(best_mix());
}

static void pieces_do_not_matter(void) {
    char text[300], whole[65], pieces[65];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 7 + i / 5);
    for (size_t bytes = 0; bytes <= sizeof text; bytes++) {
        sum(mix_portable, text, bytes, sizeof text, whole);
        for (size_t piece = 1; piece < 140; piece += 23) {
            sum(best_mix(), text, bytes, piece, pieces);
            CHECK_TEXT(pieces, whole);
        }
    }
}

TESTS(cli_sha256) {
    RUN(portable_sums);
    RUN(fastest_sums);
    RUN(pieces_do_not_matter);
    return FINISH();
}
