"""Figures in the page: as large and nearly the colours of the file, in fewer bytes, the same each time."""

import base64
import io
import re

import numpy as np
from made_report import figure
from PIL import Image

from isotrace.report.pictures import picture


def test_a_picture_is_the_file_in_fewer_bytes(tmp_path):
    path = figure(tmp_path, inches=6.75)
    text = picture(path, "said")
    assert text == picture(path, "said")
    shown = Image.open(io.BytesIO(base64.b64decode(re.search(r"base64,([^']+)'", text)[1])))
    whole = Image.open(path)
    assert shown.size == whole.size == (2025, 300)
    assert f"width={shown.width} height={shown.height}" in text
    apart = np.abs(np.asarray(shown.convert("RGB"), int) - np.asarray(whole.convert("RGB"), int))
    assert apart.mean() < 0.5
    assert apart.max() < 64
    assert len(text) < 1.4 * path.stat().st_size
