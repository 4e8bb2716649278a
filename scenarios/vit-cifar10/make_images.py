"""Draws the images that this scenario is tried with, in CIFAR-10's binary format: 8 of each of ten figures.
Run as: make_images.py data_batch_1.bin"""

import math
import random
import sys

SIDE = 32
FIGURES = 10
OF_EACH = 8


def inside(figure, x, y, size):
    """Whether a point, counted from the figure's middle, is in it."""
    far = math.hypot(x, y)
    angle = math.atan2(y, x)
    return [
        far < size,  # a disc
        size / 2 < far < size,  # a ring
        max(abs(x), abs(y)) < size,  # a square
        abs(x) + abs(y) < size,  # a diamond
        abs(x) < size / 3,  # an upright bar
        abs(y) < size / 3,  # a lying bar
        min(abs(x), abs(y)) < size / 4,  # a cross
        (x // 4 + y // 4) % 2 == 0,  # a chessboard
        (x + y) % 8 < 4,  # slanting stripes
        math.sin(3 * angle) > 0 and far < size,  # three leaves
    ][figure]


def image(figure, draw):
    """Red, green and blue, plane by plane."""
    middle = [SIDE / 2 + draw.uniform(-5, 5) for _ in range(2)]
    size = draw.uniform(6, 12)
    front, back = ([draw.randrange(256) for _ in range(3)] for _ in range(2))
    planes = []
    for colour in range(3):
        for row in range(SIDE):
            for column in range(SIDE):
                shade = front if inside(figure, column - middle[0], row - middle[1], size) else back
                planes.append(max(0, min(255, shade[colour] + draw.randrange(-12, 13))))
    return bytes(planes)


def main():
    draw = random.Random(1)
    labels = [figure for figure in range(FIGURES) for _ in range(OF_EACH)]
    with open(sys.argv[1], "wb") as file:
        for figure in labels:
            file.write(bytes([figure]) + image(figure, draw))


main()
