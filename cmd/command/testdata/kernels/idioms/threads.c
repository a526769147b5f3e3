/* Rows in threads that the kernel starts itself. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { THREADS = 4, ROOM = 8192 };

struct part {
    const float *x;
    float *y;
    int64_t begin, end, c;
};

static void in_threads(void *(*work)(void *), struct part *parts) {
    pthread_t all[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&all[i], 0, work, &parts[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(all[i], 0);
}

static void *add_rows(void *p) {
    struct part *w = p;
    for (int64_t r = w->begin; r < w->end; r++)
        for (int64_t i = 0; i < w->c; i++) w->y[i] += w->x[r * w->c + i];
    return 0;
}

/* each thread has a row of its own */
void column_sums_f32(const float *x, float *y, int64_t n, int64_t c) {
    float *own = calloc(THREADS * c + 1, sizeof *own);
    struct part parts[THREADS];
    for (int i = 0; i < THREADS; i++) parts[i] = (struct part){x, own + i * c, n * i / THREADS, n * (i + 1) / THREADS, c};
    in_threads(add_rows, parts);
    for (int64_t i = 0; i < c; i++) {
        y[i] = 0;
        for (int t = 0; t < THREADS; t++) y[i] += own[t * c + i];
    }
    free(own);
}

/* all threads add to the result */
void column_sums_racing_f32(const float *x, float *y, int64_t n, int64_t c) {
    for (int64_t i = 0; i < c; i++) y[i] = 0;
    struct part parts[THREADS];
    for (int i = 0; i < THREADS; i++) parts[i] = (struct part){x, y, n * i / THREADS, n * (i + 1) / THREADS, c};
    in_threads(add_rows, parts);
}

static float row[ROOM];

static void *lengths(void *p) {
    struct part *w = p;
    for (int64_t r = w->begin; r < w->end; r++) {
        int64_t short_of = w->c < ROOM ? w->c : ROOM;
        double sum = 0;
        for (int64_t i = 0; i < short_of; i++) row[i] = fabsf(w->x[r * w->c + i]);
        for (int64_t i = 0; i < short_of; i++) sum += row[i];
        for (int64_t i = short_of; i < w->c; i++) sum += fabsf(w->x[r * w->c + i]);
        w->y[r] = (float)sum;
    }
    return 0;
}

/* one static row for all threads */
void row_lengths_one_scratch_f32(const float *x, float *y, int64_t n, int64_t c) {
    struct part parts[THREADS];
    for (int i = 0; i < THREADS; i++) parts[i] = (struct part){x, y, n * i / THREADS, n * (i + 1) / THREADS, c};
    in_threads(lengths, parts);
}
