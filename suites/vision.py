"""Resampling of images and moves between channels and positions."""
import torch
import torch.nn.functional as F
from plumb import *


def line():
    return random_tensor(ndim=3, dim0=random(1, 4), dim1=random(1, 4), dim2=random(1, 9))


def image():
    return random_tensor(ndim=4, dim0=random(1, 4), dim1=random(1, 4), dim2=random(1, 9), dim3=random(1, 9))


def volume():
    return random_tensor(ndim=5, dim0=random(1, 3), dim1=random(1, 3), dim2=random(1, 6), dim3=random(1, 6), dim4=random(1, 6))


@autotest()
def test_interpolate_line():
    return F.interpolate(line(), size=random(1, 12).to(int), mode=oneof("nearest", "nearest-exact", "area", "linear"))


@autotest()
def test_interpolate_linear():
    return F.interpolate(
        line(), scale_factor=random(1.0, 3.0).to(float), mode="linear", align_corners=random_bool() | nothing(), recompute_scale_factor=random_bool() | nothing()
    )


@autotest()
def test_interpolate_nearest():
    return F.interpolate(image(), size=(random(1, 12), random(1, 12)), mode=constant("nearest") | nothing())


@autotest()
def test_interpolate_nearest_scale():
    # where a size stays or doubles by a broken factor, PyTorch contradicts itself
    return F.interpolate(
        volume(), scale_factor=(random(3.1, 4.0).to(float), 2.0, 3.3), mode=oneof("nearest", "nearest-exact", "area"), recompute_scale_factor=random_bool() | nothing()
    )


@autotest(auto_backward=False)
def test_interpolate_bytes():
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=random(1, 4), dim2=random(1, 9), dim3=random(1, 9), low=0, high=255, dtype=int)
    return F.interpolate(x.byte(), size=random(1, 12).to(int), mode=oneof("nearest", "nearest-exact"))


@autotest()
def test_interpolate_bilinear():
    return F.interpolate(image(), size=(random(1, 12), random(1, 12)), mode="bilinear", align_corners=random_bool() | nothing())


@autotest()
def test_interpolate_bilinear_scale():
    return F.interpolate(
        image(), scale_factor=(random(1.0, 3.0).to(float), 1.5), mode="bilinear", align_corners=random_bool(), recompute_scale_factor=random_bool() | nothing()
    )


@autotest()
def test_interpolate_bicubic():
    return F.interpolate(image(), size=(random(1, 12), random(1, 12)), mode="bicubic", align_corners=random_bool() | nothing())


@autotest()
def test_interpolate_bicubic_scale():
    # where the size stays the same by a broken factor, PyTorch's gradient is not that of its result
    return F.interpolate(image(), scale_factor=random(2.0, 3.0).to(float), mode="bicubic", align_corners=random_bool())


@autotest()
def test_interpolate_trilinear():
    return F.interpolate(volume(), size=random(1, 8).to(int), mode="trilinear", align_corners=random_bool() | nothing())


@autotest()
def test_interpolate_antialias():
    return F.interpolate(image(), size=(random(1, 12), random(1, 12)), mode=oneof("bilinear", "bicubic"), align_corners=random_bool(), antialias=True)


@autotest()
def test_interpolate_area():
    return F.interpolate(image(), size=(random(1, 12), random(1, 12)), mode="area")


@autotest()
def test_interpolate_channels_last():
    x = image().contiguous(memory_format=torch.channels_last)
    return F.interpolate(x, size=random(1, 12).to(int), mode=oneof("nearest", "nearest-exact", "area", "bilinear", "bicubic"))


@autotest()
def test_upsample():
    return F.upsample_nearest(image(), scale_factor=random(1, 4).to(int)), F.upsample_bilinear(image(), size=random(1, 9).to(int)), F.upsample(image(), 7, mode="bilinear")


@autotest()
def test_pixel_shuffle():
    r = random(1, 4).to(int)
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=r * r * random(1, 4), dim2=random(1, 6), dim3=random(1, 6))
    return F.pixel_shuffle(x, r), torch.pixel_shuffle(x.contiguous(memory_format=torch.channels_last), r)


@autotest()
def test_pixel_unshuffle():
    r = random(1, 4).to(int)
    x = random_tensor(ndim=5, dim0=random(1, 3), dim1=random(1, 3), dim2=random(1, 4), dim3=r * random(1, 4), dim4=r * random(1, 4))
    return F.pixel_unshuffle(x, r)


@autotest(auto_backward=False)
def test_channel_shuffle():
    # PyTorch 1.13 has no gradient of it
    groups = random(1, 4).to(int)
    x = random_tensor(ndim=random(3, 6), dim0=random(1, 4), dim1=groups * random(1, 4), requires_grad=False)
    return F.channel_shuffle(x, groups)


@autotest()
def test_max_unpool1d():
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=random(1, 4), dim2=random(4, 12))
    found = F.max_pool1d(x, 2, return_indices=True)
    return F.max_unpool1d(found[0], found[1], 2)


@autotest()
def test_max_unpool2d():
    k, height, width = random(1, 4).to(int), random(4, 9).to(int), random(4, 9).to(int)
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=random(1, 4), dim2=height, dim3=width)
    found = F.max_pool2d(x, k, return_indices=True)
    return F.max_unpool2d(found[0], found[1], k, output_size=(height, width))


@autotest()
def test_max_unpool3d():
    # windows side by side: where they overlap, positions beyond the output can be found
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=random(1, 4) * 2, dim2=random(1, 4) * 2, dim3=random(1, 4) * 2)
    found = F.max_pool3d(x, 2, 2, return_indices=True)
    return F.max_unpool3d(found[0], found[1], 2, stride=2)


@autotest()
def test_affine_grid():
    n = random(1, 4)
    theta = random_tensor(ndim=3, dim0=n, dim1=2, dim2=3)
    return F.affine_grid(theta, (n, random(1, 3), random(2, 6), random(2, 6)), align_corners=random_bool())


@autotest()
def test_affine_grid_volume():
    n = random(1, 4)
    theta = random_tensor(ndim=3, dim0=n, dim1=3, dim2=4)
    return F.affine_grid(theta, (n, random(1, 3), random(2, 4), random(2, 4), random(2, 4)), align_corners=random_bool())


@autotest()
def test_grid_sample():
    n = random(1, 4).to(int)
    x = random_tensor(ndim=4, dim0=n, dim1=random(1, 4), dim2=random(1, 7), dim3=random(1, 7))
    grid = random_tensor(ndim=4, dim0=n, dim1=random(1, 6), dim2=random(1, 6), dim3=2, low=-1.5, high=1.5)
    return F.grid_sample(
        x,
        grid,
        mode=oneof("bilinear", "nearest", "bicubic") | nothing(),
        padding_mode=oneof("zeros", "border", "reflection") | nothing(),
        align_corners=random_bool(),
    )


@autotest()
def test_grid_sample_volume():
    n = random(1, 3).to(int)
    x = random_tensor(ndim=5, dim0=n, dim1=random(1, 4), dim2=random(1, 5), dim3=random(1, 5), dim4=random(1, 5))
    grid = random_tensor(ndim=5, dim0=n, dim1=random(1, 4), dim2=random(1, 4), dim3=random(1, 4), dim4=3, low=-1.5, high=1.5)
    return F.grid_sample(
        x, grid, mode=oneof("bilinear", "nearest"), padding_mode=oneof("zeros", "border", "reflection"), align_corners=random_bool()
    )


@autotest()
def test_upsample_modules():
    a = torch.nn.Upsample(scale_factor=random(1, 4).to(int), mode=oneof("nearest", "bilinear", "bicubic"))
    return a(image()), torch.nn.UpsamplingNearest2d(size=(5, random(1, 9)))(image()), torch.nn.UpsamplingBilinear2d(scale_factor=2)(image())


@autotest()
def test_shuffle_modules():
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=4 * random(1, 4), dim2=random(1, 6), dim3=random(1, 6))
    y = torch.nn.PixelShuffle(2)(x)
    return torch.nn.PixelUnshuffle(2)(y)


@autotest(auto_backward=False)
def test_channel_shuffle_module():
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=6, requires_grad=False)
    return torch.nn.ChannelShuffle(oneof(2, 3))(x)


@autotest()
def test_unpool_modules():
    line, volume = torch.nn.MaxUnpool1d(3, stride=2), torch.nn.MaxUnpool3d(2)
    x = F.max_pool1d(random_tensor(ndim=2, dim0=random(1, 4), dim1=random(4, 9)), 3, 2, return_indices=True)
    y = F.max_pool3d(random_tensor(ndim=4, dim0=random(1, 4), dim1=4, dim2=random(4, 7), dim3=4), 2, return_indices=True)
    return line(x[0], x[1]), volume(y[0], y[1])


@autotest()
def test_unpool_module():
    pool, back = torch.nn.MaxPool2d(2, stride=2, return_indices=True), torch.nn.MaxUnpool2d(2, stride=2)
    found = pool(random_tensor(ndim=4, dim0=random(1, 4), dim1=random(1, 4), dim2=random(4, 9), dim3=random(4, 9)))
    return back(found[0], found[1])
