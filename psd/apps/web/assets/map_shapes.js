// Rings of polygons: areas, parts in boxes, and what they have in common.
"use strict";

const psdShapes = (() => {
  const ROUNDING = 1e-12; // fractions this close to 0 or 1 are rounding errors

  /** Rings are flat arrays x, y, x, y, ...; the sum of signed areas counts holes as negative. */
  function ringArea(ring, x0, y0) {
    let twice = 0;
    const size = ring.length;
    let ax = ring[size - 2] - x0, ay = ring[size - 1] - y0;
    for (let i = 0; i < size; i += 2) {
      const bx = ring[i] - x0, by = ring[i + 1] - y0;
      twice += ax * by - ay * bx;
      ax = bx;
      ay = by;
    }
    return twice / 2;
  }

  /** Part of a ring on one side of a line along an axis; sign is 1 for what is above the line. */
  function clipSide(ring, axis, at, sign) {
    const other = 1 - axis, result = [], size = ring.length;
    let before = size - 2;
    for (let i = 0; i < size; i += 2) {
      const a = sign * (ring[before + axis] - at), b = sign * (ring[i + axis] - at);
      if (a < 0 !== b < 0) {
        const c = ring[before + other], d = ring[i + other];
        const cross = c + (d - c) * (a / (a - b));
        if (axis === 0) result.push(at, cross);
        else result.push(cross, at);
      }
      if (b >= 0) result.push(ring[i], ring[i + 1]);
      before = i;
    }
    return result;
  }

  /** Parts of rings inside a box; rings that lie inside are the same objects. */
  function clipRings(rings, [west, south, east, north]) {
    const result = [];
    for (const ring of rings) {
      let part = ring, left = false, right = false, below = false, above = false;
      for (let i = 0; i < ring.length; i += 2) {
        const x = ring[i], y = ring[i + 1];
        if (x < west) left = true;
        if (x > east) right = true;
        if (y < south) below = true;
        if (y > north) above = true;
      }
      if (left) part = clipSide(part, 0, west, 1);
      if (right) part = clipSide(part, 0, east, -1);
      if (below) part = clipSide(part, 1, south, 1);
      if (above) part = clipSide(part, 1, north, -1);
      if (part.length >= 6) result.push(part);
    }
    return result;
  }

  /** Share of a box that clipped rings cover. */
  function coveredShare(rings, [west, south, east, north]) {
    let area = 0;
    for (const ring of rings) area += ringArea(ring, west, south);
    const share = area / ((east - west) * (north - south));
    if (share < ROUNDING) return 0;
    return share > 1 - ROUNDING ? 1 : share;
  }

  /** Rings of polygons, each a list of rings of [x, y] with the outer one first, turned. */
  function turnRings(polygons) {
    return polygons.flatMap((polygon) => polygon.map((points, number) => {
      const flat = [].concat(...points);
      const last = flat.length - 2;
      if (flat[0] === flat[last] && flat[1] === flat[last + 1]) flat.length = last;
      if (ringArea(flat, flat[0], flat[1]) > 0 === (number === 0)) return flat;
      const turned = [];
      for (let i = flat.length - 2; i >= 0; i -= 2) turned.push(flat[i], flat[i + 1]);
      return turned;
    }));
  }

  /** Whether a point is inside, by the number of sides that a ray to the east crosses. */
  function contains(rings, x, y) {
    let inside = false;
    for (const ring of rings) {
      let px = ring[ring.length - 2], py = ring[ring.length - 1];
      for (let i = 0; i < ring.length; i += 2) {
        const qx = ring[i], qy = ring[i + 1];
        if (py > y !== qy > y) {
          const turn = (qx - px) * (y - py) - (x - px) * (qy - py);
          if (turn !== 0 && turn > 0 === qy > py) inside = !inside;
        }
        px = qx;
        py = qy;
      }
    }
    return inside;
  }

  /** Area that two sets of turned rings have in common: sums over pairs of fans of triangles. */
  function commonArea(first, second) {
    const [x0, y0] = first[0];
    let area = 0;
    for (const ring of first) {
      for (const [sign, triangle] of fan(ring, x0, y0)) {
        for (const other of second) {
          let part = other;
          for (let i = 0; i < 3 && part.length; i++) {
            part = clipHalf(part, triangle[i], triangle[(i + 1) % 3]);
          }
          if (part.length >= 6) area += sign * ringArea(part, x0, y0);
        }
      }
    }
    return area;
  }

  /** Triangles from a point to the sides of a ring, turned to the left, with their signs. */
  function* fan(ring, x0, y0) {
    let a = [ring[ring.length - 2], ring[ring.length - 1]];
    for (let i = 0; i < ring.length; i += 2) {
      const b = [ring[i], ring[i + 1]];
      const turn = (a[0] - x0) * (b[1] - y0) - (a[1] - y0) * (b[0] - x0);
      if (turn > 0) yield [1, [[x0, y0], a, b]];
      if (turn < 0) yield [-1, [[x0, y0], b, a]];
      a = b;
    }
  }

  /** Part of a ring to the left of the line from a to b. */
  function clipHalf(ring, a, b) {
    const dx = b[0] - a[0], dy = b[1] - a[1], result = [];
    const side = (i) => dx * (ring[i + 1] - a[1]) - dy * (ring[i] - a[0]);
    let before = ring.length - 2, s = side(before);
    for (let i = 0; i < ring.length; i += 2) {
      const t = side(i);
      if (s < 0 !== t < 0) {
        const share = s / (s - t);
        result.push(ring[before] + (ring[i] - ring[before]) * share,
          ring[before + 1] + (ring[i + 1] - ring[before + 1]) * share);
      }
      if (t >= 0) result.push(ring[i], ring[i + 1]);
      before = i;
      s = t;
    }
    return result;
  }

  const ringsArea = (rings) => rings.reduce(
    (sum, ring) => sum + ringArea(ring, ring[0], ring[1]), 0);

  const boundsOf = (rings) => rings.reduce(([w, s, e, n], ring) => {
    const box = [w, s, e, n];
    for (let i = 0; i < ring.length; i++) {
      box[i % 2] = Math.min(box[i % 2], ring[i]);
      box[2 + (i % 2)] = Math.max(box[2 + (i % 2)], ring[i]);
    }
    return box;
  }, [Infinity, Infinity, -Infinity, -Infinity]);

  /** Rings of a region, from arrays that hold those of all regions. */
  function ringsOf({ begin, ends, x, y }, index) {
    const result = [];
    for (let ring = begin[index]; ring < begin[index + 1]; ring++) {
      const flat = [];
      for (let i = ring ? ends[ring - 1] : 0; i < ends[ring]; i++) flat.push(x[i], y[i]);
      result.push(flat);
    }
    return result;
  }

  /** Whether sides of a ring of [x, y] cross or touch each other, other than neighbours. */
  function crosses(points) {
    const size = points.length, side = (i) => [points[i], points[(i + 1) % size]];
    const turn = (a, b, c) => Math.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]));
    for (let i = 0; i < size; i++) {
      for (let j = i + 2; j < size; j++) {
        if (i === 0 && j === size - 1) continue;
        const [a, b] = side(i), [c, d] = side(j);
        if (turn(a, b, c) !== turn(a, b, d) && turn(c, d, a) !== turn(c, d, b)) return true;
      }
    }
    return Math.abs(ringArea(points.flat(), ...points[0])) === 0;
  }

  /** Whether polygons have area inside a box. */
  function meets(polygons, box) {
    return coveredShare(clipRings(turnRings(polygons), box), box) > 0;
  }

  return {
    boundsOf, clipRings, commonArea, contains, coveredShare, crosses, meets, ringsArea, ringsOf,
    turnRings,
  };
})();
