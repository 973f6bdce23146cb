# SPDX-License-Identifier: PostgreSQL
"""Print format/golden/quantiles.tsv: histograms, and the quantiles that every reader must give.

The expected figures come from the values themselves, in whole numbers and fractions, by the words of FORMAT.md (section 8,
Quantiles) alone; no code of the readers is used. `script/lint` compares the file with what this prints.
"""
from fractions import Fraction
from math import ceil

QUANTILES = ["0.5", "0.9", "0.95", "0.99", "0.999"]
LAST = 335


def bucket(value):
    """Section 5, Histogram."""
    if value < 8:
        return value
    octave = value.bit_length() - 1
    return min(8 * octave + value // 2 ** (octave - 3) - 24, LAST)


def ends(number):
    """The lowest value of the bucket, and that of the next one."""
    lowest = lambda b: b if b < 8 else (8 + b % 8) * 2 ** (b // 8 - 1)
    return lowest(number), lowest(number + 1)


def quantile(values, part):
    """`values` are in order."""
    rank = max(1, ceil(Fraction(part) * len(values)))
    low, next_low = ends(bucket(values[rank - 1]))
    middle = (low + next_low) // 2
    return min(max(middle, values[0]), values[-1])


def histogram(values):
    counts = {}
    for value in values:
        counts[bucket(value)] = counts.get(bucket(value), 0) + 1
    return ",".join(f"{number}:{count}" for number, count in sorted(counts.items()))


def spread(count, low, high):
    """So many values from low to high, further and further apart."""
    return [low + (high - low) * i * i // max(1, (count - 1) ** 2) for i in range(count)]


# Name, and the values of each part; the parts are added up.
CASES = [
    ("empty", [[]]),
    ("zero", [[0]]),
    ("one-value", [[12_345]]),
    ("equal-values", [[1_000_003] * 1_000]),
    ("minimum-above-the-middle", [[(1 << 20) + (1 << 17) - 1] * 3]),
    ("maximum-below-the-middle", [[1 << 20] * 3]),
    ("one-bucket", [list(range(4_096, 4_608))]),
    ("two-values", [[100, 1_000_000]]),
    ("each-value-has-a-bucket", [list(range(16))]),
    ("ranks-of-ten", [list(range(1, 11))]),
    ("ranks-of-twenty", [[i * i * 1_000 for i in range(1, 21)]]),
    ("ranks-of-a-hundred", [[(1 << 10) + (i << 8) for i in range(100)]]),
    ("ranks-of-a-thousand", [[3 * i * i + 7 for i in range(1_000)]]),
    ("one-above-a-rank", [[5] * 990 + [1_000] * 11]),
    ("last-bucket", [[1 << 20] * 9 + [(15 << 40) + 12_345] * 91]),
    ("beyond-the-last-bucket", [[1 << 44, 1 << 45, 1 << 46]]),
    ("all-in-the-last-bucket", [[15 << 40] * 7]),
    ("outliers-beyond-the-last-bucket", [[700_000] * 98 + [1 << 44, 1 << 47]]),
    ("two-hosts", [spread(300, 20_000, 90_000_000), spread(7, 2_000_000_000, 60_000_000_000)]),
    ("an-empty-part", [[], spread(50, 9, 70_000), []]),
    ("parts-of-one-bucket", [[4_100] * 10, [4_500] * 10, [4_300]]),
    # Times that a roll-up has rounded to 11 binary digits: the extremes stay exact, and so do the buckets.
    ("eleven-binary-digits", [[((1 << 10) + i) << 13 for i in range(0, 1_024, 5)], [((1 << 10) + i) << 14 for i in range(0, 1_024, 7)]]),
    ("many-octaves", [[3 << i for i in range(0, 42)] * 3, [5 << i for i in range(0, 40)]]),
]

print("# SPDX-License-Identifier: PostgreSQL")
print("# Histograms and their quantiles, written by quantiles.py. Parts of a case, separated by |, are added up; a part is")
print("# its values' minimum and maximum, and bucket:count of those that are not empty. Values are ticks; - is none.")
print("\t".join(["# case", "values", "parts"] + [f"p{name[2:].ljust(2, '0')}" for name in QUANTILES]))
for name, parts in CASES:
    shown = []
    for part in parts:
        part.sort()
        shown.append(f"{part[0]},{part[-1]},{histogram(part)}" if part else "-")
    values = sorted(value for part in parts for value in part)
    found = [str(quantile(values, part)) if values else "-" for part in QUANTILES]
    print("\t".join([name, str(len(values)), "|".join(shown)] + found))
