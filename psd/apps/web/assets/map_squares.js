// Least squares of noisy counts, as in psd/estimation/least_squares.py.
"use strict";

const psdSquares = (() => {
  const TINY = 1e-300;

  /**
   * Signed estimates of all nodes, and their slopes and variances given their parents.
   * @param value measured counts; `variance` is theirs, infinite where nothing was measured
   * @param peers neighbours of a count by whose mean variance it is weighted
   */
  function leastSquares(tree, value, variance, peers) {
    const { size, parent, children } = tree;
    const upward = Float64Array.from(value), upVariance = Float64Array.from(variance);
    const below = new Float64Array(size), belowVariance = new Float64Array(size);
    // All operations are in the order of Python's: a count beside an equal one is told apart.
    for (const [start, stop] of levels(tree).reverse()) {
      const inner = [];
      for (let node = start; node < stop; node++) if (children[node]) inner.push(node);
      const pooledBy = settled(inner, variance, belowVariance, upward, below, peers);
      inner.forEach((node, i) => {
        const own = variance[node], under = belowVariance[node], by = pooledBy[i];
        const weight = own === Infinity ? (by === Infinity ? 0 : 1) : 1 / (1 + by / own);
        upward[node] += weight * (below[node] - upward[node]);
        upVariance[node] = by === under ? 1 / (1 / own + 1 / under)
          : weight ** 2 * under + (1 - weight) ** 2 * own;
      });
      for (let node = start; node < stop && start > 0; node++) {
        below[parent[node]] += upward[node];
        belowVariance[parent[node]] += upVariance[node];
      }
    }
    const total = new Float64Array(size), unknowns = new Uint8Array(size);
    for (let node = 1; node < size; node++) {
      if (upVariance[node] === Infinity) unknowns[parent[node]] += 1;
      else total[parent[node]] += upVariance[node];
    }
    const slope = new Float64Array(size), signed = upward.slice();
    slope[0] = 1;
    for (let node = 1; node < size; node++) {
      const up = parent[node], isUnknown = upVariance[node] === Infinity;
      slope[node] = unknowns[up] ? Number(isUnknown)
        : upVariance[node] / Math.max(total[up], TINY);
      signed[node] += slope[node] * (signed[up] - below[up]);
    }
    return { signed, slope, variance: upVariance, root: upVariance[0] };
  }

  /** First and last node of each level. */
  function levels({ size, level, depth }) {
    const starts = new Int32Array(depth + 2).fill(size);
    for (let node = size - 1; node >= 0; node--) starts[level[node]] = node;
    return Array.from({ length: depth + 1 }, (_, at) => [starts[at], starts[at + 1]]);
  }

  /** Variances of the sums below nodes that do not depend on the noise of the nodes' counts. */
  function settled(nodes, variance, belowVariance, count, below, peers) {
    const result = Float64Array.from(nodes, (node) => belowVariance[node]), groups = new Map();
    const usable = (each) => each > 0 && each < Infinity;
    nodes.forEach((node, i) => {
      if (!usable(variance[node]) || !usable(result[i])) return;
      if (!groups.has(variance[node])) groups.set(variance[node], []);
      groups.get(variance[node]).push(i);
    });
    const least = 2 * peers + 1;
    for (const [own, group] of groups) {
      const spread = Float64Array.from(group, (i) => result[i]), size = group.length;
      if (size < least || spread.every((each) => each === spread[0])) continue;
      const counts = Float64Array.from(group, (i) => count[nodes[i]]);
      const order = Array.from(group.keys()).sort((a, b) => counts[a] - counts[b] || a - b);
      const sums = new Float64Array(size + 1);
      order.forEach((at, i) => { sums[i + 1] = sums[i] + spread[at]; });
      const places = Float64Array.from(order, (at) => counts[at]);
      const mean = Float64Array.from(order, (_, i) => {
        const first = Math.min(Math.max(i - peers, 0), size - least);
        return (sums[first + least] - sums[first]) / least;
      });
      group.forEach((i, at) => {
        const under = below[nodes[i]], weight = spread[at] / (spread[at] + own);
        const estimate = under + weight * (counts[at] - under);
        result[i] = (spread[at] * interpolate(estimate, places, mean))
          / interpolate(counts[at], places, mean);
      });
    }
    return result;
  }

  /** Value at a place between ascending places, of equal ones that of the last. */
  function interpolate(at, places, values) {
    const last = places.length - 1;
    if (at >= places[last]) return values[last];
    if (at < places[0]) return values[0];
    let low = 0, high = last;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (places[middle] <= at) low = middle;
      else high = middle;
    }
    if (places[low] === at) return values[low];
    const slope = (values[high] - values[low]) / (places[high] - places[low]);
    return slope * (at - places[low]) + values[low];
  }

  return { leastSquares };
})();
