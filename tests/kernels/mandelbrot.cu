// Escape counts with samples x samples points a pixel: nested loops, an exit that diverges.
extern "C" __global__ void mandelbrot(int *counts, int width, int height, float x0, float y0, float step,
                                      int samples, int limit)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x;
    int py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height)
        return;
    float fine = step / (float)samples;
    int total = 0;
    for (int sy = 0; sy < samples; ++sy) {
        for (int sx = 0; sx < samples; ++sx) {
            float cx = fmaf((float)(px * samples + sx), fine, x0);
            float cy = fmaf((float)(py * samples + sy), fine, y0);
            float zx = 0.0f, zy = 0.0f;
            int i = 0;
            while (i < limit) {
                float xx = __fmul_rn(zx, zx);
                float yy = __fmul_rn(zy, zy);
                if (__fadd_rn(xx, yy) > 4.0f)
                    break;
                zy = fmaf(zx + zx, zy, cy);
                zx = __fadd_rn(__fsub_rn(xx, yy), cx);
                ++i;
            }
            total += i;
        }
    }
    counts[py * width + px] = total;
}
