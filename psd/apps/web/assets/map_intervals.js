// From totals to answers with errors and intervals; see psd/query/answer_table.py and joint.py.
"use strict";

const psdIntervals = (() => {
  const TINY = 1e-300;

  /** Answer to one region with its interval; see psd/query/answer_table.py. */
  function single(model, totals, z) {
    const { meta } = model, estimate = Math.max(totals.estimate, 0);
    const noise = totals.noise + totals.rounding, published = totals.published + totals.rounding;
    const perturbation = Math.sqrt(meta.predictsPublished ? published : noise);
    const taken = Math.max(noise - published, 0);
    const bias = Math.max((estimate - Math.max(totals.signed, 0)) ** 2 - taken, 0);
    const unknown = noise > 0 || totals.uneven > 0 || estimate > 0;
    const rounding = unknown ? meta.roundingVariance : TINY;
    const variance = published + bias + totals.uneven + rounding;
    const square = Math.max(z ** 2 - 1, 0);
    const tail = (square / meta.skewDivisor) * Math.min(square / (meta.tailSquare - 1), 1);
    const restored = (meta.restored * square) / (square + 1);
    const skew = (tail * totals.uneven ** 2) / (Math.max(estimate, 1) * variance);
    const lower = Math.max(estimate - z * Math.sqrt(variance), 0);
    const most = unknown ? estimate + z * Math.sqrt(variance + restored * taken) + skew : 0;
    const ofNoise = z * Math.sqrt(published + bias + rounding + restored * taken);
    const upper = Math.min(most, estimate + totals.beyond + ofNoise);
    return judged(meta, estimate, perturbation, Math.sqrt(totals.uneven), lower, upper);
  }

  /** Total of several disjoint regions; see psd/query/joint.py. */
  function joint(model, totals, z) {
    const { meta } = model;
    const estimate = totals.estimates.reduce((sum, value) => sum + Math.max(value, 0), 0);
    const perturbation = Math.sqrt(meta.predictsPublished ? totals.published : totals.noise);
    const uneven = Math.sqrt(totals.uneven), error = Math.hypot(perturbation, uneven);
    const lower = Math.max(estimate - z * error, 0);
    return judged(meta, estimate, perturbation, uneven, lower, estimate + z * error);
  }

  function judged(meta, estimate, perturbation, nonuniformity, lower, upper) {
    const error = Math.hypot(perturbation, nonuniformity);
    const quality = judge(meta, estimate, error, lower);
    return { estimate, perturbation, nonuniformity, error, lower, upper, quality };
  }

  /** Class of an estimate: 0 good, 1 use with care, 2 poor. */
  function judge(meta, estimate, error, lower) {
    const relative = estimate > 0 ? error / estimate : Infinity;
    if (!(relative <= meta.reliable && lower > 0)) return 2;
    return relative <= meta.good ? 0 : 1;
  }

  return { joint, judge, single };
})();
