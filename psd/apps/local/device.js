/* The device of a local campaign in a browser: it randomises its own answer and sends nothing else.

   One file, no dependency. `await psdDevice.open(name)` gives the store of a device in IndexedDB;
   `store.create("2")` begins it with its cap, and `store.answer(bytesOfTheCampaign, longitude,
   latitude)`, or with an option, promises its report, the line of device.py.

   Guarantees, as those of device.py
   - The law of a report follows from epsilon and sizes alone, never from a probability in the
     campaign. No float decides a draw: words of WebCrypto are compared with integers out of 2^62.
   - A point outside the bounds, NaN and null are an answer like any other. What the device refuses
     depends on the campaign and on the store, never on the answer.
   - A device answers once in a campaign, and sends nothing in one that names a campaign as earlier
     which it answered; other campaigns neither get nor use up a report. It is in the store, on the
     disk, before the promise is kept, and later calls give it again; several tabs take turns.
   - The sum of all epsilons is at most the cap. A lost or damaged store answers nothing. */
"use strict";

globalThis.psdDevice = (() => {
  const UNIT = 1n << 62n, NANO = 10 ** 9, SHARES = 1000000, DEPTH = 20;
  const MAX_EPSILON = 1000, MAX_ANSWERS = 65536, MAX_MASK = 4096, MAX_TABLE = 2 ** 24;
  const MAX_ROUNDS = 16, MAX_CAMPAIGN = 2 ** 25;
  const LAST_READER = "3621badf"; // the last commit that reads stores of older formats

  class DeviceError extends Error {
    constructor(message, code = 2) { Object.assign(super(message), { code }); }
  }
  const require = (holds, rule) => {
    if (!holds) throw new DeviceError(`campaign is not valid: ${rule}`);
  };

  // Lower bound of 2^128 exp(nano / 10^9): a Taylor series of which each term is rounded down, and
  // squarings that round down; 64 further bits are computed and dropped at the end.
  function expLower(nano) {
    const whole = BigInt(nano), unit = BigInt(NANO), shift = 192n;
    const twice = (2n * whole) / unit, halvings = twice ? BigInt(twice.toString(2).length) : 0n;
    let term = 1n << shift, total = 0n, count = 0n;
    while (term) {
      total += term;
      count += 1n;
      term = (term * whole) / ((unit * count) << halvings);
    }
    for (let i = 0n; i < halvings; i++) total = (total * total) >> shift;
    return total >> 64n;
  }

  // Largest T such that T / (2^62 - T) is at most exp(epsilon) * each / others.
  function keepThreshold(nano, others, each = 1) {
    const weight = expLower(nano) * BigInt(each);
    return (weight << 62n) / ((BigInt(others) << 128n) + weight);
  }

  // Random words of 64 bits, and the only two ways in which they decide.
  class Words {
    keeps(threshold) { return this.word() >> 2n < threshold; }

    below(limit) {
      const size = BigInt(limit), last = ((1n << 64n) / size) * size;
      let word = this.word();
      while (word >= last) word = this.word();
      return Number(word % size);
    }
  }
  class SystemWords extends Words {
    words = [];
    word() {
      try {
        if (!this.words.length) this.words = [...crypto.getRandomValues(new BigUint64Array(512))];
        return this.words.pop();
      } catch {
        throw new DeviceError("the operating system provides no random numbers", 70);
      }
    }
  }

  // Constants: the first 32 bits of the fractions of square and cube roots of primes.
  const PRIMES = [];
  for (let n = 2; PRIMES.length < 64; n++) if (PRIMES.every((p) => n % p)) PRIMES.push(n);
  const fraction = (root) => ((root % 1) * 2 ** 32) | 0;
  const START = PRIMES.slice(0, 8).map((p) => fraction(Math.sqrt(p)));
  const STEPS = PRIMES.map((p) => fraction(Math.cbrt(p)));

  function sha256(bytes) {
    const blocks = (bytes.length + 72) >> 6, padded = new Uint8Array(blocks << 6);
    padded.set(bytes);
    padded[bytes.length] = 128;
    const view = new DataView(padded.buffer);
    view.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29));
    view.setUint32(padded.length - 4, bytes.length << 3);
    const turn = (x, n) => (x >>> n) | (x << (32 - n));
    const w = new Int32Array(64), state = Int32Array.from(START);
    for (let at = 0; at < padded.length; at += 64) {
      for (let i = 0; i < 16; i++) w[i] = view.getInt32(at + 4 * i);
      for (let i = 16; i < 64; i++) {
        const a = w[i - 15], b = w[i - 2], low = turn(a, 7) ^ turn(a, 18) ^ (a >>> 3);
        w[i] = w[i - 16] + low + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10));
      }
      let [a, b, c, d, e, f, g, h] = state;
      for (let i = 0; i < 64; i++) {
        const mix = (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g));
        const one = (h + mix + STEPS[i] + w[i]) | 0;
        const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
      }
      [a, b, c, d, e, f, g, h].forEach((value, i) => (state[i] += value));
    }
    const digest = new DataView(new ArrayBuffer(32));
    state.forEach((value, i) => digest.setInt32(4 * i, value));
    return new Uint8Array(digest.buffer);
  }

  const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  function maskText(mask) {
    const bytes = new Uint8Array((mask.length + 7) >> 3);
    mask.forEach((bit, i) => (bytes[i >> 3] |= bit << (i & 7)));
    return `"${hex(bytes)}"`;
  }

  function digitsFor(answers, modulus) {
    let digits = 1;
    for (let codes = modulus; codes < answers; codes *= modulus) digits += 1;
    return digits;
  }

  // Codes of the answers: the first ones in the order of SHA-256 of seed and code.
  function hashCodes(seed, answers, functions) {
    const text = new TextEncoder().encode(seed), bytes = new Uint8Array(text.length + 4);
    bytes.set(text);
    const view = new DataView(bytes.buffer), digests = [];
    for (let code = 0; code < functions; code++) {
      view.setUint32(text.length, code);
      digests.push(hex(sha256(bytes)));
    }
    const order = (a, b) => (digests[a] < digests[b] ? -1 : 1);
    return Array.from(digests, (_, code) => code).sort(order).slice(0, answers);
  }

  function isPrime(number) {
    for (let d = 2; d * d <= number; d++) if (number % d === 0) return false;
    return number > 1;
  }

  // Each protocol is a function from the settings of a campaign to a draw.
  const PROTOCOLS = {
    // One of k answers: the true one, or another one.
    "k-ary"(nano, answers, settings) {
      checkKeys(settings, [], "protocol");
      const threshold = keepThreshold(nano, answers - 1);
      return (answer, words) => {
        if (words.keeps(threshold)) return `[${answer}]`;
        const other = words.below(answers - 1);
        return `[${other + (other >= answer)}]`;
      };
    },
    // A bit for each answer, each drawn alone.
    unary(nano, answers, settings) {
      checkKeys(settings, ["form"], "protocol");
      const isSymmetric = settings.form === "symmetric";
      const isForm = isSymmetric || settings.form === "optimised";
      require(isForm, "form must be spelled symmetric|optimised");
      require(!isSymmetric || nano > 1, "half of its epsilon must be at least 1e-9");
      checkRange("answers of protocol unary", answers, 2, MAX_MASK);
      const keep = keepThreshold(isSymmetric ? Math.floor(nano / 2) : nano, 1);
      const chances = [UNIT - keep, isSymmetric ? keep : UNIT / 2n];
      return (answer, words) => {
        const mask = new Uint8Array(answers);
        return maskText(mask.map((_, i) => words.keeps(chances[Number(i === answer)])));
      };
    },
    // A set that holds the true answer more often than a random set. The others are a uniform set
    // (Floyd): each step adds one, whatever was drawn before.
    subset(nano, answers, settings) {
      checkKeys(settings, ["size"], "protocol");
      checkRange("answers of protocol subset", answers, 2, MAX_MASK);
      checkRange("size", settings.size, 1, answers - 1);
      const { size } = settings, threshold = keepThreshold(nano, answers - size, size);
      return (answer, words) => {
        const mask = new Uint8Array(answers), others = answers - 1;
        mask[answer] = words.keeps(threshold);
        for (let last = others - size + mask[answer]; last < others; last++) {
          const drawn = words.below(last + 1), bit = drawn + (drawn >= answer);
          mask[mask[bit] ? last + (last >= answer) : bit] = 1;
        }
        return maskText(mask);
      };
    },
    // A random linear function over GF(g) of the code of the answer, kept or replaced.
    hashing(nano, answers, settings, seed) {
      checkKeys(settings, ["modulus"], "protocol");
      const { modulus } = settings;
      checkRange("modulus", modulus, 2, MAX_TABLE);
      require(isPrime(modulus), "modulus must be a prime number");
      const functions = modulus ** digitsFor(answers, modulus);
      const isSmall = functions * modulus <= MAX_TABLE;
      require(isSmall, "it must have at most 16,777,216 different reports");
      const threshold = keepThreshold(nano, modulus - 1);
      let codes = null;
      return (answer, words) => {
        codes = codes ?? hashCodes(seed, answers, functions);
        const drawn = 1 + words.below(functions - 1);
        let value = 0;
        for (let a = drawn, v = codes[answer]; a; ) {
          value += (a % modulus) * (v % modulus);
          [a, v] = [Math.floor(a / modulus), Math.floor(v / modulus)];
        }
        value %= modulus;
        if (!words.keeps(threshold)) value = (value + 1 + words.below(modulus - 1)) % modulus;
        return `[${drawn},${value}]`;
      };
    },
  };

  // A text in its one spelling: so no float, no key twice, no integer that a number cannot hold.
  function strictJson(bytes, name) {
    try {
      const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
      const text = decoder.decode(bytes).replace(/[ \t\n\r]+$/, ""), value = JSON.parse(text);
      if (canonicalJson(value) === text) return value;
    } catch { /* the same as another spelling */ }
    throw new DeviceError(`${name} is not valid: it is not JSON in its one spelling`);
  }

  // JSON in its one spelling: sorted keys, no spaces, ASCII.
  function canonicalJson(value) {
    if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
    if (value !== null && typeof value === "object") {
      const pair = (key) => `${canonicalJson(key)}:${canonicalJson(value[key])}`;
      return `{${Object.keys(value).sort().map(pair).join(",")}}`;
    }
    if (typeof value === "number" && !Number.isSafeInteger(value)) throw new RangeError();
    const escape = (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0");
    return JSON.stringify(value).replace(/[\u007f-\uffff]/g, escape);
  }

  function contentDigest(value) {
    const { digest, ...content } = value;
    const raw = sha256(new TextEncoder().encode(canonicalJson(content)));
    const text = btoa(String.fromCharCode(...raw)).replaceAll("+", "-").replaceAll("/", "_");
    return text.slice(0, 22);
  }

  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  function checkKeys(value, keys, name) {
    const names = isObject(value) ? canonicalJson(Object.keys(value).sort()) : "";
    const has = names === canonicalJson([...keys].sort());
    require(has, `${name} must have its fields and no others`);
  }

  function checkRange(name, value, low, high) {
    const text = (n) => n.toLocaleString("en-US");
    const isInside = Number.isInteger(value) && low <= value && value <= high;
    require(isInside, `${name} must be an integer from ${text(low)} to ${text(high)}`);
  }

  function checkText(name, value, limit) {
    const isText = typeof value === "string" && [...value].length <= limit;
    const isPlain = isText && !/[\p{C}\p{Z}]/u.test(value.replaceAll(" ", ""));
    const most = limit.toLocaleString("en-US");
    require(isPlain, `${name} must be a printable text of at most ${most} characters`);
  }

  const FIELDS = ["devices", "digest", "domain", "earlier", "groups", "nano_epsilon"];
  const DIGEST = /^[A-Za-z0-9_-]{22}$/;
  const NUMBER = /^-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?(e[+-]?[0-9]{1,3})?$/;

  function parseCampaign(bytes) {
    require(bytes.length <= MAX_CAMPAIGN, "it must have at most 32 MB");
    const value = strictJson(bytes, "campaign");
    require(isObject(value) && "psd-campaign" in value, "it must be a campaign of psd");
    const version = "campaign has a version that this device does not know";
    if (value["psd-campaign"] !== 1) throw new DeviceError(version);
    checkKeys(value, [...FIELDS, "psd-campaign", "question", "title"], "campaign");
    const digest = contentDigest(value);
    const changed = "campaign does not match its digest: it was changed or is damaged";
    if (value.digest !== digest) throw new DeviceError(changed);
    const isPlaces = value.question === "places";
    require(isPlaces || value.question === "options", "this device does not know its question");
    checkText("title", value.title, 200);
    checkRange("nano_epsilon", value.nano_epsilon, 1, MAX_EPSILON * NANO);
    checkRange("devices", value.devices, 1, 10 ** 12);
    const earlier = value.earlier;
    const isList = Array.isArray(earlier) && earlier.length < MAX_ROUNDS;
    const isDigest = (text) => typeof text === "string" && DIGEST.test(text);
    require(isList && earlier.every(isDigest), "earlier must be a list of digests");
    const { title, nano_epsilon: nano, domain } = value, isNull = domain === null;
    require(isPlaces || isNull, "domain must be null if the question is not places");
    const bounds = isPlaces ? checkDomain(domain) : null;
    const groups = checkGroups(value.groups, nano, digest, isPlaces ? tileStarts : checkOptions);
    return { digest, earlier, title, bounds, nano, groups };
  }

  function checkDomain(value) {
    checkKeys(value, ["bounds", "crs", "lattice"], "domain");
    checkText("crs", value.crs, 2 ** 15);
    const side = 2 ** DEPTH, isLattice = canonicalJson(value.lattice) === `[${side},${side}]`;
    require(isLattice, `lattice must be 2^${DEPTH} columns and rows`);
    const texts = value.bounds, isList = Array.isArray(texts) && texts.length === 4;
    const areNumbers = isList && texts.every((t) => typeof t === "string" && NUMBER.test(t));
    require(areNumbers, "bounds must be 4 numbers in decimal text");
    const [west, south, east, north] = texts.map(Number);
    for (const [low, high] of [[west, east], [south, north]]) {
      const coarsest = ulp(Math.max(Math.abs(low), Math.abs(high)));
      const isWide = Number.isFinite(high - low) && (high - low) / side >= 4 * coarsest;
      require(isWide, "bounds must be wide enough, with lower edges before upper ones");
    }
    return [west, south, east, north];
  }

  // Distance from a float that is not negative to the next one.
  function ulp(value) {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, value);
    view.setBigUint64(0, view.getBigUint64(0) + 1n);
    return view.getFloat64(0) - value;
  }

  function checkGroups(value, nano, digest, checkCells) {
    const isList = Array.isArray(value) && 1 <= value.length && value.length <= MAX_ROUNDS;
    require(isList, `it must have 1 to ${MAX_ROUNDS} groups`);
    const groups = value.map((entry) => checkGroup(entry, nano, digest, checkCells));
    const shares = groups.reduce((total, group) => total + group.share, 0);
    require(shares === SHARES, "the shares must add up to 1,000,000");
    require(groups.some((group) => group.draw), "a group must be asked");
    return groups;
  }

  function checkGroup(value, nano, digest, checkCells) {
    checkKeys(value, ["share", "cells", "protocol", "counted"], "group");
    const { share, cells, protocol, counted } = value;
    checkRange("share", share, 0, SHARES);
    require(counted === null || cells === null, "a group that was counted must be closed");
    if (cells === null && protocol === null) return { share, starts: null, draw: null };
    const areTexts = Array.isArray(cells) && cells.every((key) => typeof key === "string");
    require(areTexts, "cells must be a list of texts");
    checkRange("number of answers", cells.length + 1, 2, MAX_ANSWERS);
    const starts = checkCells(cells);
    const isProtocol = isObject(protocol) && Object.keys(PROTOCOLS).includes(protocol.name);
    require(isProtocol, "this device does not have its protocol");
    const { name, ...settings } = protocol;
    return { share, starts, draw: PROTOCOLS[name](nano, cells.length + 1, settings, digest) };
  }

  // Answers in text, and *none of these*, which is the last one.
  function checkOptions(cells) {
    require(new Set(cells).size === cells.length, "each option must be stated once");
    cells.forEach((text) => checkText("an option", text || "\n", 200));
    return cells;
  }

  // First lattice cell of each cell of a partition, along the curve of the keys.
  function tileStarts(cells) {
    const starts = [];
    let end = 0;
    for (const key of cells) {
      require(/^[0-3]{0,20}$/.test(key), `a cell must be at most ${DEPTH} digits of 0 to 3`);
      const size = 4 ** (DEPTH - key.length), start = parseInt(key || "0", 4) * size;
      require(start >= end, "its cells must be in their order and not overlap");
      require(start === end, "its cells must leave no gap");
      starts.push(start);
      end = start + size;
    }
    require(end === 4 ** DEPTH, "its cells must leave no gap");
    return starts;
  }

  // Lattice cell of a value inside the bounds, bit for bit that of device.py.
  function findCell(low, high, value) {
    const side = 2 ** DEPTH, step = (high - low) / side, last = side - 1;
    let cell = Math.min(Math.max(Math.floor((value - low) * (side / (high - low))), 0), last);
    cell -= value < low + cell * step;
    cell += value >= low + (cell + 1) * step;
    return Math.min(Math.max(cell, 0), last);
  }

  // Answer in a group: the cell of a point, or *outside*, which is the last one; or of an option.
  function answerOf(campaign, group, x, y) {
    const { starts } = campaign.groups[group];
    if (!campaign.bounds) return starts.includes(x) ? starts.indexOf(x) : starts.length;
    const [west, south, east, north] = campaign.bounds;
    if (!(west <= x && x <= east && south <= y && y <= north)) return starts.length;
    const column = findCell(west, east, x), row = findCell(south, north, y);
    let along = 0;
    for (let i = 0; i < DEPTH; i++) along += (((column >> i) & 1) + 2 * ((row >> i) & 1)) * 4 ** i;
    let low = 0;
    for (let high = starts.length, middle; high - low > 1; ) {
      middle = (low + high) >> 1;
      starts[middle] <= along ? (low = middle) : (high = middle);
    }
    return low;
  }

  function drawGroup(campaign, words) {
    const number = words.below(SHARES);
    let end = 0;
    return campaign.groups.findIndex((group) => number < (end += group.share));
  }

  function drawReport(campaign, group, answer, words, ticket = null) {
    const randomised = campaign.groups[group].draw(answer, words);
    const digits = () => words.word().toString(16).padStart(16, "0");
    const nonce = ticket ?? digits() + digits();
    const head = `{"psd-report":1,"campaign":"${campaign.digest}","group":${group}`;
    return `${head},"nonce":"${nonce}","answer":${randomised}}`;
  }

  const spentBy = (answers) => Object.values(answers).reduce((sum, a) => sum + a.nano_epsilon, 0);
  function storeText(cap, answers) {
    const value = { "psd-device": 1, cap, answers };
    return canonicalJson({ ...value, digest: contentDigest(value) });
  }

  function parseStore(text) {
    const lost = "store is missing; without it this device does not answer: its spending is lost";
    if (text === undefined) throw new DeviceError(lost, 9);
    let older; // stores of older formats have another key, as their numbers were 1 and 2
    try {
      const value = strictJson(new TextEncoder().encode(text), "store");
      if (value["psd-device"] === 1 && value.digest === contentDigest(value)) return value;
      older = value["psd-store"];
    } catch { /* the same as a digest that does not match */ }
    if (older === 1 || older === 2)
      throw new DeviceError(`store has the old store format ${older}; this device reads the new ` +
        `store format 1 alone, and commit ${LAST_READER} is the last that reads the old ones; ` +
        "what was spent stays spent, and a new store is no fresh budget", 9);
    throw new DeviceError("store is damaged or of another kind; this device answers no more", 9);
  }

  // What a store holds after an answer, and the report, or null if this device sends none. A
  // campaign is known by its digest alone: no other one gets or uses up its report.
  function answerWith(text, campaign, x, y, words, ticket) {
    const { cap, answers } = parseStore(text), isKnown = (name) => Object.hasOwn(answers, name);
    const entry = isKnown(campaign.digest) ? answers[campaign.digest] : null;
    if (entry && entry.report !== null) return { text, report: entry.report };
    const rounds = campaign.earlier.filter(isKnown).map((name) => answers[name]);
    if (!entry && rounds.some((each) => each.report !== null)) return { text, report: null };
    const shares = campaign.groups.map((group) => group.share), ofAll = canonicalJson(shares);
    const alike = entry ?? rounds.find((each) => canonicalJson(each.shares) === ofAll);
    const over = "campaign costs more epsilon than the cap of the store leaves";
    if (spentBy(answers) + campaign.nano > cap) throw new DeviceError(over, 4);
    const group = alike ? alike.group : drawGroup(campaign, words);
    const isAsked = Boolean(campaign.groups[group]?.draw);
    const answer = isAsked ? answerOf(campaign, group, x ?? NaN, y ?? NaN) : null;
    const report = isAsked ? drawReport(campaign, group, answer, words, ticket) : null;
    const nano = isAsked ? campaign.nano : 0;
    answers[campaign.digest] = { group, nano_epsilon: nano, report, shares };
    return { text: storeText(cap, answers), report };
  }

  // Nano-epsilon of decimal text, above 0 and at most 1,000.
  function parseNano(text) {
    const [, whole, part = ""] = /^([0-9]{1,4})(?:\.([0-9]{1,9}))?$/.exec(text) ?? [null, "0"];
    const nano = Number(whole) * NANO + Number(part.padEnd(9, "0"));
    if (nano < 1 || nano > MAX_EPSILON * NANO) {
      throw new DeviceError("cap must be a decimal number above 0 and at most 1,000");
    }
    return nano;
  }

  // A store of this origin. All of an answer is inside one transaction, so tabs take turns; it is
  // complete, and with durability strict on the disk, before the report is given.
  class Store {
    constructor(name, database) { Object.assign(this, { name, database }); }
    change(work) {
      return new Promise((resolve, reject) => {
        const isOnDisk = { durability: "strict" };
        const transaction = this.database.transaction("stores", "readwrite", isOnDisk);
        const table = transaction.objectStore("stores"), request = table.get(this.name);
        let result, refusal = new DeviceError("store cannot be written; nothing was sent", 6);
        transaction.oncomplete = () => resolve(result);
        transaction.onabort = () => reject(refusal);
        request.onsuccess = () => {
          try {
            const done = work(request.result);
            result = done.report;
            if (done.text !== request.result) table.put(done.text, this.name);
          } catch (error) {
            refusal = error;
            transaction.abort();
          }
        };
      });
    }

    create(cap) {
      return this.change((text) => {
        if (text !== undefined) throw new DeviceError("store exists; it is not replaced", 9);
        return { text: storeText(parseNano(cap), {}), report: null };
      });
    }

    answer(bytes, x, y, { words = new SystemWords(), ticket = null } = {}) {
      const campaign = parseCampaign(bytes);
      if (ticket !== null && !/^[0-9a-f]{32}$/.test(ticket)) {
        throw new DeviceError("ticket must be 32 small digits of hex");
      }
      return this.change((text) => answerWith(text, campaign, x, y, words, ticket));
    }

    spent() {
      return this.change((text) => ({ text, report: spentBy(parseStore(text).answers) / NANO }));
    }
  }

  function open(name = "device") {
    return new Promise((resolve, reject) => {
      const request = indexedDB.open("psd-device", 1);
      request.onupgradeneeded = () => request.result.createObjectStore("stores");
      request.onsuccess = () => resolve(new Store(name, request.result));
      request.onerror = () => reject(new DeviceError("store cannot be opened", 9));
    });
  }

  const checks = { sha256, hex, hashCodes, expLower, keepThreshold, answerWith, storeText };
  const parts = { Words, SystemWords, parseCampaign, answerOf, drawGroup, drawReport, parseNano };
  return Object.freeze({ DeviceError, Store, open, ...parts, ...checks });
})();
