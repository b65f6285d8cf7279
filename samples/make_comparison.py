#!/usr/bin/python3
"""Makes samples/comparison.png: parts of the samples four times larger, by bicubic interpolation, by
default-x4 and by another model (realesr-general-x4v3 in the README), side by side.

make_comparison.py UPSCALE MODEL.onnx [TITLE]

UPSCALE is the program, MODEL.onnx the other model, TITLE its name (default: the file's). Needs
python3-pil.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

HERE = Path(__file__).resolve().parent
SCALE, GAP, HEAD = 4, 4, 20
WIDTH, HEIGHT = 60, 38  # of a part, in pixels of what is enlarged
# Picture, how many times it is reduced first (which takes the traces of JPEG away), left and top.
PARTS = (("mountain.png", 1, 92, 32), ("brushes.jpg", 2, 26, 24))


def enlarge(program, sample, target, *options):
    subprocess.run([program, sample, target, "--scale", str(SCALE), "-q",
                    "--overwrite", *options], check=True)
    return Image.open(target).convert("RGB")


def rows(program, model, folder):
    """For each part its enlargements, from left to right."""
    for name, reduction, left, top in PARTS:
        small = Image.open(HERE / name).convert("RGB")
        small = small.resize([n // reduction for n in small.size], Image.BICUBIC)
        sample = folder / "sample.png"
        small.save(sample)
        whole = [small.resize((small.width * SCALE, small.height * SCALE), Image.BICUBIC),
                 enlarge(program, sample, folder / "ours.png"),
                 enlarge(program, sample, folder / "other.png", "--model", model)]
        box = [SCALE * n for n in (left, top, left + WIDTH, top + HEIGHT)]
        yield [image.crop(box) for image in whole]


def main():
    if len(sys.argv) not in (3, 4):
        raise SystemExit(__doc__)
    program, model = sys.argv[1:3]
    titles = ["bicubic", "default-x4", sys.argv[3] if len(sys.argv) == 4 else Path(model).stem]
    wide, high = SCALE * WIDTH, SCALE * HEIGHT
    size = (3 * wide + 2 * GAP, HEAD + len(PARTS) * (high + GAP) - GAP)
    sheet = Image.new("RGB", size, "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default()
    for column, title in enumerate(titles):
        left = column * (wide + GAP)
        draw.text((left + (wide - font.getbbox(title)[2]) // 2, 4), title, "black", font)
    with tempfile.TemporaryDirectory() as folder:
        for row, images in enumerate(rows(program, model, Path(folder))):
            for column, image in enumerate(images):
                sheet.paste(image, (column * (wide + GAP), HEAD + row * (high + GAP)))
    sheet.save(HERE / "comparison.png", optimize=True)


if __name__ == "__main__":
    main()
