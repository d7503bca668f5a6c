"""Figures inside the page: PNG files as data URIs in at most 256 colours, half of the bytes and as sharp.
Our choice; the files in results/figures stay as they are."""

import base64
import html
from io import BytesIO
from pathlib import Path

from PIL import Image

COLOURS = 256


def picture(path: Path, caption: str) -> str:
    """A figure with its caption (HTML); width and height are given, so that text does not move while it loads."""
    with Image.open(path) as image:
        width, height = image.size
        few = image.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    data = BytesIO()
    few.save(data, format="PNG")
    source = f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"
    alt = html.escape(path.stem.replace("_", " "))
    shown = f"<img alt='{alt}' width={width} height={height} src='{source}'>"
    return f"<figure id={html.escape(path.stem)}>{shown}<figcaption>{caption}</figcaption></figure>"
