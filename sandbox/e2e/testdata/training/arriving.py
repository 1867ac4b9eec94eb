"""The example's data loader, with data that arrives when a test says so: the file that
CLICKS_ARRIVED names has two numbers. The batches below the first are there, those below
the second come slowly, and the rest is still to come."""

import os
import sys
import time

sys.path.insert(0, "/opt/training")

import clicks
import data_loader

SECONDS = 0.1


class ArrivingClicks(clicks.Clicks):
    def batch(self, number, test=False):
        while number >= arrived()[1]:
            time.sleep(SECONDS)
        if number >= arrived()[0]:
            time.sleep(SECONDS)
        return super().batch(number, test)


def arrived():
    with open(os.environ["CLICKS_ARRIVED"]) as file:
        return [int(word) for word in file.read().split()]


if __name__ == "__main__":
    clicks.Clicks = ArrivingClicks
    data_loader.main()
