"""The history of promotions in a file, through kills."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tipbench.recommender.promotion.files import FilePromotions
from tipbench.recommender.promotion.interface import live_history

_WRITER = """
import sys
from pathlib import Path
from tests.recommender.gates import BACK, V2
from tipbench.recommender.promotion.files import FilePromotions
promotions = FilePromotions(Path(sys.argv[1]))
known = len(promotions.history())
while True:
    promotions.append((V2, BACK)[known % 2], known)
    known += 1
    print(known, flush=True)
"""


def test_killed_at_random_moments_the_history_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "promotions.jsonl"
    promotions = FilePromotions(path)
    generator = random.Random(9)
    for _ in range(5):
        writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE)
        assert writer.stdout
        told = [int(writer.stdout.readline())]
        time.sleep(generator.random() / 20)
        writer.send_signal(signal.SIGKILL)
        told += [int(line) for line in writer.stdout.read().splitlines()]
        writer.wait()
        writer.stdout.close()
        acts = promotions.history()
        assert told[-1] <= len(acts) <= told[-1] + 1
        assert live_history(acts, "here")[-1] == ("egreedy", "egreedy/v2")[len(acts) % 2]
