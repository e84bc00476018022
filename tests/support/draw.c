#include "support/draw.h"

uint64_t draw_state = 1;

void draw_from(int argc, char **argv) {
    draw_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
}

uint32_t draw(uint32_t below) {
    draw_state = draw_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(draw_state >> 33) % below;
}
