/* Orders of indices. */
#include "smoke.h"

static void check_cycle(lx_handle sampler, int64_t length, int64_t batch, int64_t cycle) {
    int64_t steps = length / batch, *index = malloc((size_t)(steps * batch) * 8);
    char *seen = calloc((size_t)length, 1);
    CHECK(index != NULL && seen != NULL);
    OK(lx_sampler_fill(sampler, cycle * steps, steps, index, steps * batch, &err));
    for (int64_t i = 0; i < steps * batch; i++) {
        CHECK(index[i] >= 0 && index[i] < length && !seen[index[i]]);
        seen[index[i]] = 1;
    }
    free(seen);
    free(index);
}

static void check_sampler(void) {
    int64_t whole[12], part[6];
    lx_handle sampler = 0;
    for (int32_t mode = LX_SEQUENTIAL; mode <= LX_CYCLIC; mode++) {
        OK(lx_sampler_new(mode, 50, 6, 42, 0, 1, &sampler, &err));
        OK(lx_sampler_fill(sampler, 7, 2, whole, 12, &err));
        OK(lx_sampler_free(sampler, &err));
        for (int32_t rank = 0; rank < 2; rank++) { /* contiguous parts of each batch */
            OK(lx_sampler_new(mode, 50, 6, 42, rank, 2, &sampler, &err));
            OK(lx_sampler_fill(sampler, 7, 2, part, 6, &err));
            for (int i = 0; i < 6; i++) CHECK(part[i] == whole[i / 3 * 6 + rank * 3 + i % 3]);
            OK(lx_sampler_free(sampler, &err));
        }
        if (mode == LX_SEQUENTIAL)
            for (int i = 0; i < 12; i++) CHECK(whole[i] == (42 + i) % 50);
    }
    OK(lx_sampler_new(LX_CYCLIC, 1000, 64, 1, 0, 1, &sampler, &err));
    for (int64_t cycle = 0; cycle < 3; cycle++) check_cycle(sampler, 1000, 64, cycle);
    FAILS(LX_ARGUMENT, lx_sampler_fill(sampler, -1, 1, whole, 12, &err));
    FAILS(LX_ARGUMENT, lx_sampler_fill(sampler, 0, -1, whole, 12, &err));
    FAILS(LX_ARGUMENT, lx_sampler_fill(sampler, 0, 1, whole, 12, &err)); /* 64 are due */
    FAILS(LX_ARGUMENT, lx_sampler_fill(sampler, 0, 1, NULL, 64, &err));
    OK(lx_sampler_fill(sampler, INT64_MAX, 0, NULL, 0, &err));
    OK(lx_sampler_free(sampler, NULL));
    OK(lx_sampler_new(LX_CYCLIC, 70000, 7, 1, 0, 1, &sampler, &err));
    check_cycle(sampler, 70000, 7, 5);
    OK(lx_sampler_free(sampler, &err));

    sampler = 0;
    FAILS(LX_ARGUMENT, lx_sampler_new(3, 10, 2, 0, 0, 1, &sampler, &err));
    FAILS(LX_ARGUMENT, lx_sampler_new(LX_IID, 0, 2, 0, 0, 1, &sampler, &err));
    FAILS(LX_ARGUMENT, lx_sampler_new(LX_IID, 10, 0, 0, 0, 1, &sampler, &err));
    FAILS(LX_ARGUMENT, lx_sampler_new(LX_IID, 10, 2, 0, 2, 2, &sampler, &err));
    FAILS(LX_ARGUMENT, lx_sampler_new(LX_IID, 10, 2, 0, 0, 0, &sampler, &err));
    FAILS(LX_ARGUMENT, lx_sampler_new(LX_IID, 10, 256, 0, 0, 3, &sampler, &err));
    CHECK(strstr(err.message, "256") != NULL && strstr(err.message, "3") != NULL);
    FAILS(LX_ARGUMENT, lx_sampler_new(LX_CYCLIC, 10, 11, 0, 0, 1, &sampler, &err));
    FAILS(LX_ARGUMENT, lx_sampler_new(LX_IID, 10, 2, 0, 0, 1, NULL, &err));
    CHECK(sampler == 0);
    passed("sampler");
}

/* ---- parts of stores ---- */

static lx_source source_of(int32_t mode, int64_t length, double weight) {
    lx_source s;
    memset(&s, 0, sizeof s);
    s.struct_bytes = sizeof s;
    s.mode = mode;
    s.length = length;
    s.weight = weight;
    return s;
}

/* Two cycles over the subset are two times each of its records. */
static void check_source(lx_source *source, const int64_t *records, int64_t count) {
    lx_handle sampler = 0;
    int64_t index[64], seen[64] = {0};
    OK(lx_sampler_new_of(source, 1, 42, 0, 1, &sampler, &err));
    if (source->index != NULL) memset(source->index, 0xff, (size_t)count * 8); /* it was copied */
    OK(lx_sampler_fill(sampler, 0, 2 * count, index, 2 * count, &err));
    for (int64_t i = 0; i < 2 * count; i++) {
        int64_t k = 0;
        while (k < count && records[k] != index[i]) k++;
        CHECK(k < count && seen[k] == i / count);
        seen[k]++;
        if (source->mode == LX_SEQUENTIAL) CHECK(k == i % count);
    }
    OK(lx_sampler_free(sampler, &err));
}

static void check_subsets(void) {
    for (int32_t mode = LX_SEQUENTIAL; mode <= LX_CYCLIC; mode += LX_CYCLIC) {
        int64_t records[] = {7, 3, 99, 0, 50}, list[] = {7, 3, 99, 0, 50}, range[] = {90, 87, 84, 81};
        lx_source s = source_of(mode, 100, 0);
        s.subset = LX_LIST;
        s.index = list;
        s.count = 5;
        check_source(&s, records, 5);
        s = source_of(mode, 100, 0);
        s.subset = LX_RANGE;
        s.start = 90, s.stop = 80, s.stride = -3;
        check_source(&s, range, 4);
        s.subset = LX_ALL;
        s.length = 3;
        int64_t all[] = {0, 1, 2};
        check_source(&s, all, 3);
    }
    for (int wrong = 0; wrong < 8; wrong++) {
        int64_t list[] = {7, 100};
        lx_handle none = 0;
        lx_source s = source_of(LX_CYCLIC, 100, 0);
        s.subset = LX_LIST;
        s.index = list;
        s.count = 1;
        if (wrong == 0) s.count = 2; /* 100 is no record */
        if (wrong == 1) s.count = 0;
        if (wrong == 2) s.count = -1;
        if (wrong == 3) s.index = NULL;
        if (wrong == 4) s.subset = 3;
        if (wrong == 5) s.subset = LX_RANGE; /* of a stride of 0 */
        if (wrong == 6) s.struct_bytes = 8;
        if (wrong == 7) s.mode = 3;
        FAILS(LX_ARGUMENT, lx_sampler_new_of(&s, 1, 0, 0, 1, &none, &err));
        FAILS(LX_ARGUMENT, lx_sampler_new_of(NULL, 1, 0, 0, 1, &none, &err));
        FAILS(LX_ARGUMENT, lx_sampler_new_of(&s, 1, 0, 0, 1, NULL, &err));
        CHECK(none == 0);
    }
    passed("samplers of subsets");
}

static void check_split(void) {
    double fractions[] = {0.7, 0.2, 0.1}, wrong[] = {0.7, 0.2, 0.2};
    int64_t sizes[3], index[1000], again[1000];
    char seen[1000] = {0};
    OK(lx_split(1000, fractions, 3, 42, sizes, NULL, 0, &err));
    CHECK(sizes[0] == 700 && sizes[1] == 200 && sizes[2] == 100);
    memset(sizes, 0, sizeof sizes);
    OK(lx_split(1000, fractions, 3, 42, sizes, index, 1000, &err));
    CHECK(sizes[0] == 700 && sizes[1] == 200 && sizes[2] == 100);
    for (int i = 0; i < 1000; i++) {
        CHECK(index[i] >= 0 && index[i] < 1000 && !seen[index[i]]);
        seen[index[i]] = 1;
        if (i != 0 && i != 700 && i != 900) CHECK(index[i] > index[i - 1]);
    }
    OK(lx_split(1000, fractions, 3, 42, sizes, again, 1000, &err));
    CHECK(memcmp(index, again, sizeof index) == 0);
    OK(lx_split(1000, fractions, 3, 43, sizes, again, 1000, &err));
    CHECK(memcmp(index, again, sizeof index) != 0);
    FAILS(LX_ARGUMENT, lx_split(1000, wrong, 3, 42, sizes, index, 1000, &err));
    FAILS(LX_ARGUMENT, lx_split(1000, fractions, 3, 42, sizes, index, 999, &err));
    FAILS(LX_ARGUMENT, lx_split(1000, fractions, 0, 42, sizes, index, 1000, &err));
    FAILS(LX_ARGUMENT, lx_split(1000, NULL, 3, 42, sizes, index, 1000, &err));
    FAILS(LX_ARGUMENT, lx_split(1000, fractions, 3, 42, NULL, index, 1000, &err));
    FAILS(LX_ARGUMENT, lx_split(1000, fractions, 3, 42, sizes, NULL, 1000, &err));
    FAILS(LX_ARGUMENT, lx_split(0, fractions, 3, 42, sizes, NULL, 0, &err));
    passed("splits");
}

/* ---- mixes ---- */

enum { MIX_STEPS = 50, MIX_BATCH = 20, MIX_DRAWS = MIX_STEPS * MIX_BATCH };

/* Three sources: each has its share at any step, and its own order. */
static void check_mix_of(lx_handle mix) {
    int32_t source[MIX_DRAWS];
    int64_t index[MIX_DRAWS], counts[3] = {0, 0, 0}, drawn[3];
    OK(lx_mix_fill(mix, 0, MIX_STEPS, source, index, MIX_DRAWS, &err));
    for (int i = 0; i < MIX_DRAWS; i++) {
        if (i % MIX_BATCH == 0) {
            OK(lx_mix_drawn(mix, i / MIX_BATCH, drawn, 3, &err));
            CHECK(memcmp(drawn, counts, sizeof drawn) == 0);
        }
        int32_t k = source[i];
        CHECK(k >= 0 && k < 3);
        if (k == 0) CHECK(index[i] == counts[0] % 7); /* in sequence */
        if (k == 1) CHECK(index[i] == 5 || index[i] == 11); /* a list */
        if (k == 2) CHECK(index[i] >= 0 && index[i] < 1000);
        counts[k]++;
    }
    CHECK(counts[0] >= 482 && counts[0] <= 518); /* 500, 300 and 200 are due */
    CHECK(counts[1] >= 282 && counts[1] <= 318);

    int32_t part[MIX_BATCH / 2];
    int64_t part_index[MIX_BATCH / 2];
    OK(lx_mix_fill(mix, 9, 0, NULL, NULL, 0, &err));
    FAILS(LX_ARGUMENT, lx_mix_fill(mix, 9, 1, part, part_index, MIX_BATCH / 2, &err));
    FAILS(LX_ARGUMENT, lx_mix_fill(mix, -1, 1, source, index, MIX_BATCH, &err));
    FAILS(LX_ARGUMENT, lx_mix_fill(mix, INT64_MAX / 2, 1, source, index, MIX_BATCH, &err));
    FAILS(LX_ARGUMENT, lx_mix_fill(mix, 9, 1, NULL, index, MIX_BATCH, &err));
    FAILS(LX_ARGUMENT, lx_mix_fill(mix, 9, 1, source, NULL, MIX_BATCH, &err));
    FAILS(LX_ARGUMENT, lx_mix_drawn(mix, 9, drawn, 2, &err));
    FAILS(LX_ARGUMENT, lx_mix_drawn(mix, 9, NULL, 3, &err));
}

static void check_mix(void) {
    int64_t list[] = {5, 11};
    lx_source sources[] = {
        source_of(LX_SEQUENTIAL, 7, 5), source_of(LX_CYCLIC, 12, 3), source_of(LX_IID, 1000, 2),
    };
    sources[1].subset = LX_LIST;
    sources[1].index = list;
    sources[1].count = 2;
    lx_handle mix = 0, half = 0, none = 0;
    OK(lx_mix_new(sources, 3, MIX_BATCH, 42, 0, 1, &mix, &err));
    check_mix_of(mix);
    for (int32_t rank = 0; rank < 2; rank++) { /* contiguous parts of each batch */
        int32_t source[MIX_BATCH], part[MIX_BATCH / 2];
        int64_t index[MIX_BATCH], part_index[MIX_BATCH / 2];
        size_t at = (size_t)rank * MIX_BATCH / 2;
        OK(lx_mix_fill(mix, 9, 1, source, index, MIX_BATCH, &err));
        OK(lx_mix_new(sources, 3, MIX_BATCH, 42, rank, 2, &half, &err));
        OK(lx_mix_fill(half, 9, 1, part, part_index, MIX_BATCH / 2, &err));
        CHECK(memcmp(part, source + at, sizeof part) == 0 && memcmp(part_index, index + at, sizeof part_index) == 0);
        OK(lx_mix_free(half, &err));
    }
    OK(lx_mix_free(mix, &err));
    FAILS(LX_CLOSED, lx_mix_free(mix, &err));
    FAILS(LX_ARGUMENT, lx_mix_new(sources, 3, MIX_BATCH, 42, 0, 3, &none, &err));
    FAILS(LX_ARGUMENT, lx_mix_new(sources, 0, MIX_BATCH, 42, 0, 1, &none, &err));
    FAILS(LX_ARGUMENT, lx_mix_new(NULL, 3, MIX_BATCH, 42, 0, 1, &none, &err));
    FAILS(LX_ARGUMENT, lx_mix_new(sources, 3, MIX_BATCH, 42, 0, 1, NULL, &err));
    sources[2].weight = -1;
    FAILS(LX_ARGUMENT, lx_mix_new(sources, 3, MIX_BATCH, 42, 0, 1, &none, &err));
    CHECK(none == 0);
    passed("mixes");
}

/* ---- budgets ---- */

enum { TEXTS = 500, BUDGET = 2000, MULTIPLE = 4 };

/* Of 502 records 2 are left out, and no batch of the others exceeds the budget. */
static void check_budget_cycle(lx_handle plan, const int64_t *lengths, int64_t cycle) {
    int64_t batches = 0, counts[TEXTS], index[TEXTS], total = 0;
    char seen[TEXTS + 2] = {0};
    OK(lx_budget_batches(plan, &batches, &err));
    CHECK(batches > 1 && batches <= TEXTS / MULTIPLE);
    OK(lx_budget_counts(plan, cycle * batches, batches, counts, &err));
    for (int64_t k = 0; k < batches; k++) total += counts[k];
    CHECK(total == TEXTS);
    OK(lx_budget_fill(plan, cycle * batches, batches, index, TEXTS, &err));
    for (int64_t k = 0, i = 0; k < batches; k++) {
        int64_t longest = 0, end = i + counts[k];
        for (; i < end; i++) {
            CHECK(index[i] >= 0 && index[i] < TEXTS + 2 && !seen[index[i]]);
            seen[index[i]] = 1;
            if (longest < lengths[index[i]]) longest = lengths[index[i]];
        }
        CHECK(counts[k] % MULTIPLE == 0 && counts[k] * longest <= BUDGET);
    }
    FAILS(LX_ARGUMENT, lx_budget_fill(plan, 0, batches, index, TEXTS - 1, &err));
    FAILS(LX_ARGUMENT, lx_budget_fill(plan, 0, batches, NULL, TEXTS, &err));
    FAILS(LX_ARGUMENT, lx_budget_fill(plan, -1, batches, index, TEXTS, &err));
    FAILS(LX_ARGUMENT, lx_budget_counts(plan, -1, 1, counts, &err));
    FAILS(LX_ARGUMENT, lx_budget_counts(plan, 0, 1, NULL, &err));
    FAILS(LX_ARGUMENT, lx_budget_batches(plan, NULL, &err));
}

static void check_budget(void) {
    int64_t lengths[TEXTS + 2], n[2], index[TEXTS], part[TEXTS];
    uint32_t narrow[TEXTS + 2];
    lx_handle plan = 0, other = 0, none = 0;
    for (int i = 0; i < TEXTS + 2; i++) narrow[i] = (uint32_t)(lengths[i] = 1 + i * 7919 % 300);
    OK(lx_budget_new(lengths, TEXTS + 2, 8, BUDGET, 0, MULTIPLE, 42, 0, 1, &plan, &err));
    for (int64_t cycle = 0; cycle < 3; cycle++) check_budget_cycle(plan, lengths, cycle);
    for (int32_t rank = 0; rank < 2; rank++) { /* from lengths of either width */
        OK(lx_budget_new(narrow, TEXTS + 2, 4, BUDGET, 0, MULTIPLE, 42, rank, 2, &other, &err));
        OK(lx_budget_counts(plan, 17, 1, n, &err));
        OK(lx_budget_counts(other, 17, 1, n + 1, &err));
        CHECK(n[0] == 2 * n[1]);
        OK(lx_budget_fill(plan, 17, 1, index, n[0], &err));
        OK(lx_budget_fill(other, 17, 1, part, n[1], &err));
        CHECK(memcmp(part, index + rank * n[1], (size_t)n[1] * 8) == 0);
        OK(lx_budget_free(other, &err));
    }
    OK(lx_budget_free(plan, &err));
    FAILS(LX_CLOSED, lx_budget_free(plan, &err));

    OK(lx_budget_new(lengths, TEXTS + 2, 8, INT64_MAX, 10, 1, 42, 0, 1, &plan, &err));
    OK(lx_budget_batches(plan, n, &err)); /* of at most 10 records */
    CHECK(n[0] == (TEXTS + 2 + 9) / 10);
    OK(lx_budget_free(plan, &err));

    FAILS(LX_ARGUMENT, lx_budget_new(lengths, TEXTS + 2, 8, 100, 0, 1, 42, 0, 1, &none, &err));
    CHECK(strstr(err.message, "100") != NULL && strstr(err.message, "record") != NULL);
    FAILS(LX_ARGUMENT, lx_budget_new(lengths, TEXTS + 2, 2, BUDGET, 0, 1, 42, 0, 1, &none, &err));
    FAILS(LX_ARGUMENT, lx_budget_new(lengths, 0, 8, BUDGET, 0, 1, 42, 0, 1, &none, &err));
    FAILS(LX_ARGUMENT, lx_budget_new(NULL, 5, 8, BUDGET, 0, 1, 42, 0, 1, &none, &err));
    FAILS(LX_ARGUMENT, lx_budget_new(lengths, 5, 8, BUDGET, 0, 1, 42, 0, 2, &none, &err));
    FAILS(LX_ARGUMENT, lx_budget_new(lengths, 5, 8, BUDGET, 0, 1, 42, 0, 1, NULL, &err));
    CHECK(none == 0);
    passed("budgets");
}

void check_samplers(void) {
    check_sampler();
    check_subsets();
    check_split();
    check_mix();
    check_budget();
}
