// Round numbers between the classes of a map; see psd/_util/colours.py.
"use strict";

const psdClasses = (() => {
  const SHARES = [0.1, 0.25, 0.45, 0.65, 0.82, 0.94];
  const ROUND = [1, 2, 5, 10];

  /** At most six rising numbers that divide the positive values, which have areas on the map. */
  function breaks(values, areas) {
    const order = Array.from(values.keys()).filter((i) => values[i] > 0 && values[i] < Infinity);
    if (!order.length) return [];
    order.sort((a, b) => values[a] - values[b]);
    const rising = order.map((i) => values[i]), share = [];
    let total = 0;
    order.forEach((i, at) => {
      const weight = Math.sqrt(rising[at]) * areas[i];
      share.push(total + weight / 2);
      total += weight;
    });
    const found = SHARES.map((each) => nearest(interpolate(each * total, share, rising)));
    const last = rising[rising.length - 1];
    return [...new Set(found)].filter((each) => rising[0] < each && each < last);
  }

  /** Value at a place, by straight lines between ascending places. */
  function interpolate(at, places, values) {
    const next = places.findIndex((place) => place > at);
    if (next === 0) return values[0];
    if (next < 0) return values[values.length - 1];
    const part = (at - places[next - 1]) / (places[next] - places[next - 1]);
    return values[next - 1] + part * (values[next] - values[next - 1]);
  }

  /** Round number that is nearest by its logarithm. */
  function nearest(value) {
    const decade = 10 ** Math.floor(Math.log10(value));
    const away = ROUND.map((each) => Math.abs(Math.log(value / decade / each)));
    return Number((decade * ROUND[away.indexOf(Math.min(...away))]).toPrecision(3));
  }

  return { breaks };
})();
