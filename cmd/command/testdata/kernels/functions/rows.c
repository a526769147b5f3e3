#include <math.h>
#include <stdint.h>

void softmax_f32(const float *x, float *y, int64_t n, int64_t c) {
    for (int64_t i = 0; i < n; i++) {
        const float *row = x + i * c;
        float top = -INFINITY, total = 0;
        for (int64_t j = 0; j < c; j++)
            if (row[j] > top || isnan(row[j])) top = row[j];
        for (int64_t j = 0; j < c; j++) total += y[i * c + j] = expf(row[j] - top);
        for (int64_t j = 0; j < c; j++) y[i * c + j] /= total;
    }
}

void softmax_unscaled_f32(const float *x, float *y, int64_t n, int64_t c) {
    for (int64_t i = 0; i < n; i++) {
        float total = 0;
        for (int64_t j = 0; j < c; j++) total += y[i * c + j] = expf(x[i * c + j]);
        for (int64_t j = 0; j < c; j++) y[i * c + j] /= total;
    }
}

void cumsum_f64(const double *x, double *y, int64_t n, int64_t c) {
    for (int64_t i = 0; i < n; i++) {
        double running = 0;
        for (int64_t j = 0; j < c; j++) y[i * c + j] = running += x[i * c + j];
    }
}

void cumsum_carried_f64(const double *x, double *y, int64_t n, int64_t c) {
    static double running;
    for (int64_t i = 0; i < n; i++) {
        if (i) running = 0;
        for (int64_t j = 0; j < c; j++) y[i * c + j] = running += x[i * c + j];
    }
}

void amax_f32(const float *x, float *y, int64_t n, int64_t c) {
    for (int64_t i = 0; i < n; i++) {
        float top = 0;
        for (int64_t j = 0; j < c; j++)
            if (x[i * c + j] > top || isnan(x[i * c + j])) top = x[i * c + j];
        y[i] = top;
    }
}

void sum_i32(const int32_t *x, int64_t *y, int64_t n, int64_t c) {
    for (int64_t i = 0; i < n; i++) {
        int32_t total = 0;
        for (int64_t j = 0; j < c; j++) total = (int32_t)((uint32_t)total + (uint32_t)x[i * c + j]);
        y[i] = total;
    }
}
