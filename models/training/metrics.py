"""PSNR and SSIM as the super-resolution literature takes them: luma, border cut off."""

import numpy as np


def luma(rgb):
    """BT.601 luma in [16, 235] of an RGB picture in [0, 255], height x width x 3."""
    return 16.0 + rgb.astype(np.float64) @ np.array([65.481, 128.553, 24.966]) / 255.0


def psnr(a, b):
    error = np.mean((a - b) ** 2)
    return float("inf") if error == 0 else 10.0 * np.log10(255.0 ** 2 / error)


def _blur(a):
    """Gaussian of 11 taps, sigma 1.5, without padding."""
    taps = np.exp(-((np.arange(11) - 5.0) ** 2) / (2 * 1.5 ** 2))
    taps /= taps.sum()
    h, w = a.shape
    a = sum(t * a[i:h - 10 + i] for i, t in enumerate(taps))
    return sum(t * a[:, i:w - 10 + i] for i, t in enumerate(taps))


def ssim(a, b):
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    ma, mb = _blur(a), _blur(b)
    va, vb, cov = _blur(a * a) - ma * ma, _blur(b * b) - mb * mb, _blur(a * b) - ma * mb
    return float(np.mean((2 * ma * mb + c1) * (2 * cov + c2)
                         / ((ma * ma + mb * mb + c1) * (va + vb + c2))))


def compare(result, truth, border, *measures):
    """(PSNR, SSIM), or the given measures, on luma of two 8-bit RGB pictures, `border` pixels cut
    from each side."""
    a, b = (luma(x)[border:-border, border:-border] for x in (result, truth))
    return tuple(measure(a, b) for measure in measures or (psnr, ssim))
