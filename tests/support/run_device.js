/* Runs device.js over tasks, for tests: JSON on standard input, and on standard output. */
"use strict";
require(process.argv[2]);
const { readFileSync } = require("fs");

const bytes = (text) => Uint8Array.from(Buffer.from(text, "base64"));

function listed(texts) {
  const words = new psdDevice.Words(), left = texts.map(BigInt);
  words.word = () => {
    if (!left.length) throw new Error("more words than expected");
    return left.shift();
  };
  return words;
}

const TASKS = {
  hashes: ({ texts }) => texts.map((text) => psdDevice.hex(psdDevice.sha256(bytes(text)))),
  thresholds: ({ sizes }) => sizes.map((size) => psdDevice.keepThreshold(...size).toString()),
  codes: ({ seed, answers, functions }) => psdDevice.hashCodes(seed, answers, functions),
  reports({ campaign, devices }) {
    const one = psdDevice.parseCampaign(bytes(campaign));
    return devices.map(([group, answer, words]) =>
      psdDevice.drawReport(one, group, answer, listed(words)));
  },
  groups({ campaign, devices }) {
    const one = psdDevice.parseCampaign(bytes(campaign));
    return devices.map((words) => psdDevice.drawGroup(one, listed(words)));
  },
  answers({ campaign, group, points }) {
    const one = psdDevice.parseCampaign(bytes(campaign));
    return points.map(([x, y]) => psdDevice.answerOf(one, group, Number(x), Number(y)));
  },
  system({ campaign, answers, random }) {
    const one = psdDevice.parseCampaign(bytes(campaign)), words = new psdDevice.SystemWords();
    const usual = crypto.getRandomValues;
    if (random === false) crypto.getRandomValues = () => { throw new Error("no randomness"); };
    try {
      return answers.map((answer) => psdDevice.drawReport(one, 0, answer, words));
    } finally {
      crypto.getRandomValues = usual;
    }
  },
  store({ text, campaign, x, y, words, ticket }) {
    const one = psdDevice.parseCampaign(bytes(campaign));
    return psdDevice.answerWith(text ?? undefined, one, x, y, listed(words), ticket ?? null);
  },
  caps: ({ texts }) => texts.map((text) => {
    try {
      return psdDevice.parseNano(text);
    } catch (error) {
      return error.message;
    }
  }),
};

const results = JSON.parse(readFileSync(0, "utf8")).map((task) => {
  try {
    return { result: TASKS[task.task](task) };
  } catch (error) {
    return { error: error.message, code: error.code ?? null };
  }
});
process.stdout.write(JSON.stringify(results));
