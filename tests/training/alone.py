"""`python alone.py join RUN ...`: a volunteer that does not wait for others before it begins."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from training.__main__ import main
from training.volunteer import peer

if __name__ == "__main__":
    peer.FIRST_NEWS_SECONDS = 0.5
    raise SystemExit(main())
