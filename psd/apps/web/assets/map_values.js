// Means and sums of values in areas, with errors and intervals; see psd/query/means.py.
"use strict";

const psdValues = (() => {
  const { judge } = psdIntervals;
  const LEAST_RECORDS = 1e-9;

  /**
   * Mean and sum of a value in an area.
   * @param noise of the release: variance of a single count, and the quantiles of its law
   * @param value its name and bounds
   * @param weights totals of the weights towards the upper and the lower bound
   * @param counts answer of the number of records in the same area
   */
  function answer(meta, noise, value, weights, counts, z) {
    const [high, low] = weights.map((totals) => Math.max(totals.estimate, 0));
    const records = high + low, p = records > 0 ? high / records : 0.5;
    const given = weights[0].noise + weights[0].rounding;
    const { uneven: shape, edges } = weights[0];
    const all = { value, high, records, p, given, edges, shape, counts };
    return { name: value.name, mean: mean(meta, noise, all, z), sum: sum(all, z) };
  }

  function mean(meta, noise, all, z) {
    const { value, records, p, given, edges, shape, counts } = all;
    const width = value.upper - value.lower;
    const errorOf = (variance) => (records > LEAST_RECORDS
      ? Math.min(Math.sqrt((width / records) ** 2 * variance), width / 2) : width / 2);
    const perturbation = errorOf(given + edges), nonuniformity = errorOf(shape);
    const error = Math.min(Math.hypot(perturbation, nonuniformity), width / 2);
    const [first, last] = fieller(noise, all, z);
    const estimate = value.lower + width * p;
    const lower = value.lower + width * Math.min(first, p);
    const upper = value.lower + width * Math.max(last, p);
    const isFew = !(records > 0 && counts.perturbation / records <= meta.reliable);
    const quality = isFew ? 2 : judge(meta, estimate - value.lower, error, lower - value.lower);
    const hasInterval = lower > value.lower || upper < value.upper;
    return { estimate, perturbation, nonuniformity, error, lower, upper, quality, hasInterval };
  }

  function sum(all, z) {
    const { value, records, p, given, edges, shape, counts } = all;
    const width = value.upper - value.lower, middle = value.lower + width * p;
    const estimate = records > LEAST_RECORDS ? middle * records : 0;
    // A - p N varies with N by the noise of A, and not by what lies in parts of cells.
    const byNoise = width ** 2 * (given + edges)
      + (2 * middle * width * (1 - 2 * p) * given) / ((1 - p) ** 2 + p ** 2);
    const byShape = width ** 2 * shape;
    const perturbation = Math.sqrt(Math.max(
      middle ** 2 * counts.perturbation ** 2 + byNoise, 0));
    const nonuniformity = Math.sqrt((middle * counts.nonuniformity) ** 2 + byShape);
    const sides = [counts.estimate - counts.lower, counts.upper - counts.estimate];
    if (middle < 0) sides.reverse();
    const [down, up] = sides.map((side) => Math.sqrt(Math.max(
      (middle * side) ** 2 + z ** 2 * (byNoise + byShape), 0)));
    // No record is below the lower bound or above the upper one.
    const lower = value.lower < 0 ? estimate - down : Math.max(estimate - down, 0);
    const upper = value.upper > 0 ? estimate + up : Math.min(estimate + up, 0);
    const error = Math.hypot(perturbation, nonuniformity);
    return { estimate, perturbation, nonuniformity, error, lower, upper };
  }

  /** Ends of the interval of the share, 0 and 1 where there is none; see psd/query/joint.py. */
  function fieller(noise, all, z) {
    const { high, records, p, given, edges, shape, counts } = all, square = z ** 2;
    // Independent noise of A and of B of which A - p N has the variance.
    const ofNoise = stretch(noise, all) ** 2 * given;
    const ofEach = (ofNoise + edges + shape) / ((1 - p) ** 2 + p ** 2);
    const a = records ** 2 - 2 * square * ofEach;
    const b = high * records - square * ofEach, q = high ** 2 - square * ofEach;
    if (!(a > 0) || counts.lower <= 0) return [0, 1];
    const root = Math.sqrt(Math.max(b ** 2 - a * q, 0));
    return [Math.max((b - root) / a, 0), Math.min(Math.max((b + root) / a, 0), 1)];
  }

  /** Quantile of the noise of a mean over that of a normal one of its variance. */
  function stretch(noise, { p, counts }) {
    if (!noise.single) return 1;
    const ratio = counts.perturbation ** 2 / noise.single;
    const alone = Math.min(ratio, 1 / Math.max(ratio, 1));
    const { stretch: table } = noise, place = Math.min(p, 1 - p) * 2 * table.length;
    const at = Math.min(Math.floor(place), table.length - 1);
    const next = Math.min(at + 1, table.length - 1);
    const found = table[at] + (table[next] - table[at]) * (place - at);
    return 1 + alone * (found - 1);
  }

  return { answer };
})();
