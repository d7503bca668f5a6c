"""A lock whose file goes with its holder: one at a time all the same, however many come and go."""

from concurrent.futures import ThreadPoolExecutor

from isotrace.locks import alone


def test_many_that_come_and_go_hold_it_one_at_a_time(tmp_path):
    now, most = [0], [0]

    def hold(_: int) -> None:
        with alone(tmp_path / "x"):
            now[0] += 1
            most[0] = max(most[0], now[0])
            now[0] -= 1

    with ThreadPoolExecutor(16) as pool:
        assert len(list(pool.map(hold, range(2000)))) == 2000
    assert most == [1]
    assert list(tmp_path.iterdir()) == []
