/** Faults of the reported usage. */
import { soundly } from "./broken.ts";
import type { WireFault } from "./fault.ts";
import type { Play } from "./wire.ts";
import { send } from "./written.ts";

/** The value that replaces each number of the upstream's usage. */
const usage = (number: string): Play =>
  soundly((text) => text.replace(/("\w*(?:_tokens|TokenCount)":) ?[\d.]+/g, `$1${number}`));

/** Numbers of tokens that cannot be. */
export const NUMBERS: readonly WireFault[] = [
  ...([
    ["negative", "-5"],
    ["huge", "5e15"],
    ["beyond all numbers", "1e400"],
    ["text", '"12"'],
    ["null", "null"],
    ["a fraction", "1.5"],
    ["a list", "[12]"],
    ["true", "true"],
  ] as const).map(([name, number]): WireFault => ({
    name: `usage ${name}`,
    about: `Every number of tokens is ${number}`,
    play: usage(number),
    // Some hosts write numbers as text.
    counted: name === "text" ? "either" : "gateway",
    streamed: "answer",
    whole: "answer",
  })),
  {
    name: "usage absent",
    about: "No token counts",
    play: soundly((text) => text.replace(/,"(usage|usageMetadata)":\{(?:[^{}]|\{[^{}]*\})*\}/g, "")),
    counted: "gateway",
    streamed: "answer",
    whole: "answer",
  },
  {
    name: "usage of zeros",
    about: "Every number of tokens is 0",
    play: usage("0"),
    counted: "gateway",
    streamed: "answer",
    whole: "answer",
  },
  {
    name: "usage decreasing",
    about: "Usage comes twice, first a thousand times as much",
    play: (line, answer) =>
      send(line, {
        ...answer,
        pieces: [...answer.pieces, ...answer.ending.filter(tellsUsage).slice(0, -1).map(thousandfold)],
        opening: answer.opening.map((text) => tellsUsage(text) ? thousandfold(text) : text),
      }),
    counted: "either",
    streamed: "answer",
    whole: "answer",
  },
  {
    name: "more cached than read",
    about: "More tokens from the cache than in the prompt",
    play: soundly((text) => text.replace(/("(?:cached_tokens|cachedContentTokenCount)":)\d+/g, "$1900")),
    counted: "either",
    streamed: "answer",
    whole: "answer",
  },
];

function tellsUsage(text: string): boolean {
  return /"(usage|usageMetadata)":\{/.test(text);
}

function thousandfold(text: string): string {
  return text.replace(/("\w*(?:_tokens|TokenCount)":)(\d+)/g, (_, name, count) => `${name}${count}000`);
}
