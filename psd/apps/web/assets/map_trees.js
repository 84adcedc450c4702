// Trees of nodes level by level: topology, sums, and what noise says of each node.
"use strict";

const psdTrees = (() => {
  const TINY = 1e-300;

  /** Topology from the number of children; nodes stand level by level, and families together. */
  function topology(children) {
    const size = children.length, leaves = [];
    const firstChild = new Int32Array(size), parent = new Int32Array(size).fill(-1);
    const level = new Uint8Array(size);
    for (let node = 0, next = 1; node < size; node++) {
      firstChild[node] = next;
      for (let child = next; child < next + children[node]; child++) {
        parent[child] = node;
        level[child] = level[node] + 1;
      }
      next += children[node];
      if (!children[node]) leaves.push(node);
    }
    return { size, children, firstChild, parent, level, leaves: Int32Array.from(leaves),
      depth: level[size - 1] };
  }

  /** Values of all nodes from their differences to those of the parents. */
  function fromParents(tree, offsets) {
    const values = offsets.slice();
    for (let node = 1; node < tree.size; node++) values[node] += values[tree.parent[node]];
    return values;
  }

  /** Values of all nodes from those of the leaves, unless there is one for each node. */
  function fromLeaves(tree, values) {
    if (values.length === tree.size) return values;
    const all = new Float64Array(tree.size);
    tree.leaves.forEach((leaf, i) => { all[leaf] = values[i]; });
    for (let node = tree.size - 1; node > 0; node--) all[tree.parent[node]] += all[node];
    return all;
  }

  const finite = (values) => values.map((value) => (value === Infinity ? 0 : value));

  /** Variance of all nodes by the noise: what the parent explains, and their own. */
  function nodeVariances(tree, { slope, variance, root }) {
    const result = new Float64Array(tree.size), total = new Float64Array(tree.size);
    for (let node = 1; node < tree.size; node++) total[tree.parent[node]] += variance[node];
    result[0] = root;
    for (let node = 1; node < tree.size; node++) {
      const up = tree.parent[node], beside = Math.max(total[up] - variance[node], 0);
      result[node] = variance[node] * (1 - slope[node]) ** 2
        + slope[node] ** 2 * (beside + result[up]);
    }
    return result;
  }

  /**
   * Covariance of the published counts; see psd/estimation/least_squares.py.
   * @param noise slopes and variances of least squares; infinite where a node is not measured, and
   *   then its variance is in `whole`
   */
  function publishedNoise(tree, { slope, variance, whole, root }, count, empty) {
    const { size } = tree, own = new Float64Array(size), total = new Float64Array(size);
    const unknown = new Uint8Array(size);
    for (let node = 0; node < size; node++) {
      const infinite = variance[node] === Infinity, up = Math.max(tree.parent[node], 0);
      const measured = infinite ? whole[node] : variance[node];
      const part = Math.min(count[node] ** 2 / Math.max(measured, TINY), 1);
      own[node] = infinite ? 0 : variance[node] * (empty + (1 - empty) * part);
      if (node) total[up] += own[node];
      if (node && infinite) unknown[up] = 1;
    }
    const slopes = new Float64Array(size);
    for (let node = 0; node < size; node++) {
      const sum = node ? total[tree.parent[node]] : own[0];
      const kept = node ? unknown[tree.parent[node]] : variance[0] === Infinity;
      slopes[node] = sum <= 0 || kept ? slope[node] : own[node] / Math.max(sum, TINY);
    }
    return { slope: slopes, variance: own, root };
  }

  return { finite, fromLeaves, fromParents, nodeVariances, publishedNoise, topology };
})();
