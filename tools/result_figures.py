"""Figures of the public record: a value with its interval, how it is written, and how one is made of samples.

The definitions are those of docs/comparing.md (src/measure/statistics.h, src/analysis/compare/interval.h): a page shows what
`paceline report` would show of the same records.
"""

import math
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass
class Figure:
    """A value in `unit`, and the ends of its interval where it has one. The unit "%" has values that are parts of 1."""

    value: float
    low: float = None
    high: float = None
    unit: str = "x"
    digits: int = None  # behind the point, where a record was typed with so many; else by size and unit

    @property
    def has_interval(self):
        return self.low is not None and self.high is not None and self.low != self.high

    def __str__(self):
        digits = decimals(self)
        text = number(self.value, self.unit, digits)
        if self.has_interval:
            text += f" [{number(self.low, self.unit, digits)}, {number(self.high, self.unit, digits)}]"
        return text + SUFFIXES.get(self.unit, "")


# What follows a number; a unit that is not here stands in the heading of its column.
SUFFIXES = {"%": " %", "min": " min"}


def decimals(figure):
    if figure.digits is not None:
        return figure.digits
    size = abs(figure.value) * (100 if figure.unit == "%" else 1)
    if figure.unit == "count":
        return 0
    if figure.unit == "%":
        return 1 if size >= 0.1 or size == 0 else 3
    if figure.unit == "x":
        narrow = figure.has_interval and figure.high - figure.low < 0.1
        return 1 if size >= 10 else 3 if narrow else 2
    return 0 if size >= 100 or size == int(size) else 1 if size >= 10 else 2


def number(value, unit, digits):
    if unit == "e":
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{value * (100 if unit == '%' else 1):,.{digits}f}"


def typed_digits(values, unit):
    """Digits behind the point that a typed figure was given with."""
    return 0 if unit == "e" else max(len(str(value).partition(".")[2]) for value in values)


def quantile(samples, part):
    ordered = sorted(samples)
    at = part * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def interval_rank(count):
    """The largest k for which the k-th smallest and k-th largest of so many samples enclose the median with 95 %."""
    below = 0.0
    for k in range(1, count // 2 + 1):
        below += math.comb(count, k - 1) / 2**count
        if 1 - 2 * below < CONFIDENCE:
            return k - 1
    return count // 2


def estimate(samples, unit):
    """Median and its distribution-free 95 % interval (the extremes, where there are fewer than six)."""
    ordered = sorted(samples)
    k = max(1, interval_rank(len(ordered)))
    return Figure(quantile(ordered, 0.5), ordered[k - 1], ordered[-k], unit)


def pooled(repeats, unit):
    """The median of all samples, its interval widened to the medians of the repeats."""
    result = estimate([sample for repeat in repeats for sample in repeat], unit)
    if len(repeats) > 1:
        medians = [quantile(repeat, 0.5) for repeat in repeats]
        result.low, result.high = min(result.low, *medians), max(result.high, *medians)
    return result


def ratio(above, below, unit):
    """above / below; intervals add in quadrature on the logarithm."""
    value = above.value / below.value
    down = math.hypot(math.log(above.value / above.low), math.log(below.high / below.value))
    up = math.hypot(math.log(above.high / above.value), math.log(below.value / below.low))
    return Figure(value, value * math.exp(-down), value * math.exp(up), unit)


def over(numerator, below, unit):
    return Figure(numerator / below.value, numerator / below.high, numerator / below.low, unit)


def accuracy(parts, images):
    """The mean of the accuracies of one or several trainings on the same images, with a 95 % interval.

    The standard error joins that of the images, sqrt(p (1 - p) / images), with the spread over the trainings.
    """
    mean = sum(parts) / len(parts)
    variance = mean * (1 - mean) / images
    if len(parts) > 1:
        variance += sum((part - mean) ** 2 for part in parts) / (len(parts) - 1) / len(parts)
    half = 1.96 * math.sqrt(variance)
    return Figure(mean, mean - half, min(1.0, mean + half), "%")
