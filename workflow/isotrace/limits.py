"""How many files a checkpoint's stores take, known before a model runs.

File systems of clusters count files; the bounds are our choice.

At most 200 files for up to four buckets and 50 for each further one, in rows, moments and attention sums together;
no file above 256 MB, which the shards of ``grids`` keep to.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from isotrace.encoding import Encoding, StoredDtype
from isotrace.errors import DataError
from isotrace.grids import Grid, block_grid, run_grid

FILES, BUCKETS, FILES_A_BUCKET = 200, 4, 50
_COORDINATES = 8
"""Arrays of one entry a row: token_id, sequence, draw, position, target_id, masked, split, loss."""
_SPLITS = 2
_NAMES = 2
"""Files of an array of names: metadata and one chunk."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """What one checkpoint will hold: S sites of width d, and the rows of each bucket.

    quantities: entries on the moments' axis of that name; groups: of sequences, for moments by group (0: none);
    matrices: shapes of stacked weight gradients; heads: shapes of stacked attention sums, both (stack, ...).
    """

    sites: int
    width: int
    rows: tuple[int, ...]
    dtype: StoredDtype = "float32"
    quantities: int = 2
    groups: int = 0
    matrices: tuple[Shape, ...] = ()
    heads: tuple[Shape, ...] = ()

    @property
    def files(self) -> int:
        """Files of the three stores, manifests aside."""
        attention = 1 + sum(_array(shape, 8) for shape in self.heads)
        return self.row_files + attention + 1 + len(self.rows) * self._moments()

    @property
    def row_files(self) -> int:
        """Those of the rows, with the root of their store."""
        return 1 + sum(self._cache(n) for n in self.rows)

    @property
    def allowed(self) -> int:
        """Files that so many buckets may take."""
        return FILES + FILES_A_BUCKET * max(len(self.rows) - BUCKETS, 0)

    def _cache(self, n: int) -> int:
        """Files of one bucket's rows: its group, its sites, coordinates, activations and gradients."""
        encoding = Encoding(self.dtype)
        rows = _array((self.sites, n, self.width), encoding.stored.itemsize, run_grid)
        scale = _array((self.sites, n), 4, run_grid) if encoding.scaled else 0
        return 1 + _NAMES + _COORDINATES * _array((n,), 8) + 2 * (rows + scale)

    def _moments(self) -> int:
        """Files of one bucket's moments: its group, three axes of names, five arrays, and what else is asked for."""
        place, d = (_SPLITS, self.quantities, self.sites), self.width
        arrays: list[tuple[Shape, int]] = [(place, 8)] * 2 + [((*place, d), 4)] * 2 + [((*place, d, d), 4)]
        if self.groups:
            by_group = (self.groups, *place[1:])
            arrays += [((*by_group, d, d), 4), ((*by_group, 2 + 2 * d), 8)]
        matrices = sum(_NAMES + _array(shape, 4) for shape in self.matrices)
        return 1 + 3 * _NAMES + sum(_array(shape, itemsize) for shape, itemsize in arrays) + matrices


def check_limits(plan: Plan, what: str) -> int:
    """The files that ``what`` (a checkpoint) will take; `DataError` when they are more than allowed."""
    files = plan.files
    if files > plan.allowed:
        smaller = replace(plan, dtype="float16").files <= plan.allowed
        advice = (
            ", name fewer capture.sites or take store.dtype: float16" if smaller else " or name fewer capture.sites"
        )
        raise DataError(
            f"{what}: {files} files for {len(plan.rows)} buckets of up to {max(plan.rows)} rows at {plan.sites} sites "
            f"of width {plan.width}, at most {plan.allowed} are allowed; lower sample.rows_per_bucket{advice}"
        )
    return files


def _array(shape: Shape, itemsize: int, grid: Callable[[Shape, int], Grid] = block_grid) -> int:
    """Files of one numeric array: its metadata and its shards."""
    return 1 + grid(shape, itemsize).files(shape)
