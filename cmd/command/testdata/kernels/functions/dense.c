#include <stdint.h>
#include <stdlib.h>

void matmul_f32(const float *a, const float *b, float *out, int64_t m, int64_t k, int64_t n) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float total = 0;
            for (int64_t l = 0; l < k; l++) total += a[i * k + l] * b[l * n + j];
            out[i * n + j] = total;
        }
}

void matmul_tiled_f32(const float *a, const float *b, float *out, int64_t m, int64_t k, int64_t n) {
    for (int64_t i = 0; i < m * n; i++) out[i] = 0;
    for (int64_t l = 0; l + 8 <= k || l == 0; l += 8)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                for (int64_t p = l; p < l + 8 && p < k; p++) out[i * n + j] += a[i * k + p] * b[p * n + j];
}

void add_f32(const float *x, const float *y, float *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = x[i] + y[i];
}

void add_unrolled_f32(const float *x, const float *y, float *out, int64_t n) {
    for (int64_t i = 0; i < n; i += 4)
        for (int64_t j = 0; j < 4; j++) out[i + j] = x[i + j] + y[i + j];
}

void smooth_f32(const float *x, float *out, int64_t n, int64_t c) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < c; j++) {
            const float *at = x + i * c + j;
            float left = at[-1] * (j > 0), right = j + 1 < c ? at[1] : 0;
            out[i * c + j] = 0.25f * left + 0.5f * at[0] + 0.25f * right;
        }
}

void smooth_safe_f32(const float *x, float *out, int64_t n, int64_t c) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < c; j++) {
            const float *at = x + i * c + j;
            float left = j > 0 ? at[-1] : 0, right = j + 1 < c ? at[1] : 0;
            out[i * c + j] = 0.25f * left + 0.5f * at[0] + 0.25f * right;
        }
}

void row_sum_f32(const float *x, float *out, int64_t n, int64_t c) {
    for (int64_t i = 0; i < n; i++) {
        double total = 0;
        for (int64_t j = 0; j < c; j++) total += x[i * c + j];
        out[i] = (float)total;
    }
}

void row_sum_inclusive_f32(const float *x, float *out, int64_t n, int64_t c) {
    for (int64_t i = 0; i < n; i++) {
        double total = 0, next = 0;
        for (int64_t j = 0; j <= c; j++) total += next, next = x[i * c + j];
        out[i] = (float)total;
    }
}
