"""The example's dataloader, with data that arrives when a test says so: the file that
CLICKS_ARRIVED names has two numbers. The batches below the first are there, those below
the second come slowly, and the rest so slowly that a test can do something meanwhile. A
batch always comes in the end, so that only a training that is stuck stops."""

import os
import sys
import time

sys.path.insert(0, "/opt/training")

import clicks
import data_loader

SLOWLY = 0.1
LATE = 10


class ArrivingClicks(clicks.Clicks):
    def batch(self, number, test=False):
        late = time.monotonic() + LATE
        while number >= arrived()[1] and time.monotonic() < late:
            time.sleep(SLOWLY)
        if number >= arrived()[0]:
            time.sleep(SLOWLY)
        return super().batch(number, test)


def arrived():
    with open(os.environ["CLICKS_ARRIVED"]) as file:
        return [int(word) for word in file.read().split()]


if __name__ == "__main__":
    clicks.Clicks, clicks.USERS = ArrivingClicks, int(os.environ.get("CLICKS_USERS", clicks.USERS))
    data_loader.main()
